"""`reactor test` beside `promtool test rules`: 100 rules, 100 tests of 42 samples each, in one file and in several."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Result

EACH = 100
"""Rules, and tests, in a file."""
FILES = 8
RULE = """  - name: r{k}
    kind: TrafficFailover
    mode: Enforce
    route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{k}}}
    primary: app{k}
    backends: [{{service: app{k}}}, {{service: app{k}-west, target: service/west/shop/app{k}}}]
    tolerationSeconds: 15
    recoverySeconds: 60
"""
TEST = """  - name: test {k}
    intervalSeconds: 5
    inputs:
      - {{target: service/east/shop/app{k}, values: "Healthy x2 Unhealthy x10 Healthy x30"}}
      - {{target: service/west/shop/app{k}, values: "Healthy x42"}}
    expect:
      - {{at: 25, action: SetWeights, weights: {{app{k}: 0, app{k}-west: 1}}}}
      - {{at: 120, action: SetWeights, weights: {{app{k}: 1, app{k}-west: 0}}}}
"""
ALERT = """  - alert: r{k}
    expr: up{{app="app{k}"}} == 0
    for: 15s
"""
ALERT_TEST = """  - interval: 5s
    input_series:
      - {{series: 'up{{app="app{k}"}}', values: '1x2 0x10 1x30'}}
    alert_rule_test:
      - {{eval_time: 30s, alertname: r{k}, exp_alerts: [{{exp_labels: {{app: app{k}}}}}]}}
      - {{eval_time: 150s, alertname: r{k}}}
"""


def rule_tests() -> Result:
    """Seconds for one file and for several, and how much of promtool's time for the same count of rules and tests."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = [_file(folder, f"shop{n}_test.yaml", _tests(f"shop{n}.yaml"), _rules()) for n in range(FILES)]
        figures = {"files": FILES, "one_file_seconds": _seconds("reactor", "test", ours[:1])}
        figures["seconds"] = _seconds("reactor", "test", ours)
        if (promtool := shutil.which("promtool", path=f"{Path(sys.executable).parent}:/usr/bin")) is not None:
            theirs = [_file(folder, f"prom{n}_test.yml", _alert_tests(f"prom{n}.yml"), _alerts()) for n in range(FILES)]
            one, all_ = (_seconds(promtool, "test rules", some) for some in (theirs[:1], theirs))
            figures |= {
                "ratio_of_one": round(figures["one_file_seconds"] / one, 3),
                "ratio": round(figures["seconds"] / all_, 3),
            }
    bars = {"ratio_of_one": "≤ 1/6", "ratio": "≤ 1/15"}
    return Result("rule-tests", f"{EACH} rules × {EACH} tests, in 1 file and in {FILES}", figures, bars)


def _file(folder: Path, name: str, tests: str, rules: str) -> str:
    (folder / name).write_text(tests, "utf-8")
    (folder / name.replace("_test", "")).write_text(rules, "utf-8")
    return str(folder / name)


def _rules() -> str:
    return "apiVersion: reactor/v1\nrules:\n" + "".join(RULE.format(k=k) for k in range(EACH))


def _tests(rules: str) -> str:
    head = f"apiVersion: reactor/v1\nruleFiles: [{rules}]\ntests:\n"
    return head + "".join(TEST.format(k=k) for k in range(EACH))


def _alerts() -> str:
    return "groups:\n- name: g\n  rules:\n" + "".join(ALERT.format(k=k) for k in range(EACH))


def _alert_tests(rules: str) -> str:
    head = f"rule_files: [{rules}]\nevaluation_interval: 5s\ntests:\n"
    return head + "".join(ALERT_TEST.format(k=k) for k in range(EACH))


def _seconds(program: str, verb: str, files: Sequence[str]) -> float:
    command = [sys.executable, "-m", "reactor.cli.main"] if program == "reactor" else [program]
    began = time.perf_counter()
    subprocess.run([*command, *verb.split(), *files], check=True, stdout=subprocess.DEVNULL)
    return round(time.perf_counter() - began, 2)
