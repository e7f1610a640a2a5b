"""Bad rule files and rule tests, one row each: told with file and line, in bounded time, without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest
from click.testing import CliRunner

from reactor.cli.main import cli

CPU_SECONDS = 2
MEMORY_BYTES = 100 << 20
"""More than the commands take for a good file: what a file of at most 1 MiB may cost."""
HEAD = "apiVersion: reactor/v1\nrules:\n"
NOTIFY = HEAD + "- {name: r, kind: Notification, match: '**', message: m"
FAILOVER = (
    HEAD + "- name: r\n  kind: TrafficFailover\n  route: {cluster: e, kind: HTTPRoute, namespace: n, name: x}\n"
    "  backends: [{service: a}, {service: b}]\n  "
)
ALERTS = "apiVersion: reactor/v1\nsources:\n- {name: am, kind: AlertmanagerWebhook, target: 'custom/{x}', matchers: "
QUERY = "apiVersion: reactor/v1\nsources:\n- {name: q, kind: PrometheusQuery, prometheus: p, target: custom/x, query: "
BOMB = "".join(f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9 if n else ["x"] * 9) + "]\n" for n in range(9))

FILES: dict[str, tuple[str, str]] = {
    "alias bomb": (BOMB, "f.yaml:2:"),
    "deep lists": ("a: " + "[" * 100_000, "f.yaml:1:"),
    "deep mappings": ("a: " + "{a: " * 100_000, "f.yaml:1:"),
    "deep blocks": ("\n".join(" " * depth + "a:" for depth in range(300)), "f.yaml:34:"),
    "an alias to itself": ("a: &a [*a]", "f.yaml:1:8:"),
    "more than a mebibyte": ("# " + "x" * (1 << 20), "f.yaml:1:1: larger than 1 MiB"),
    "a key twice": ("apiVersion: reactor/v1\nrules: []\nrules: []", "f.yaml:3:1:"),
    "no is a word": (HEAD + "- {name: no, kind: no, match: x}", "f.yaml:3:"),
    "1:30 is a text": (FAILOVER + "tolerationSeconds: 1:30", "f.yaml:7:"),
    "a tag": ("a: !!python/object/apply:os.system [x]", "f.yaml:1:"),
    "a tab": ("rules:\n\t- x", "f.yaml:2:"),
    "ten thousand rules": (HEAD + "- {name: x, kind: Notification, match: y, message: z}\n" * 10_000, "f.yaml:"),
    "1e999": (FAILOVER + "tolerationSeconds: 1e999", "f.yaml:7:"),
    "an integer of 3,000 digits": (FAILOVER + "tolerationSeconds: " + "9" * 3000, "f.yaml:7:"),
    "not a number": (FAILOVER + "tolerationSeconds: .nan", "f.yaml:7:"),
    "a second document": (HEAD + "---\na: b", "f.yaml:3:"),
    "NUL": ("a: \0", "f.yaml:1"),
    "control characters in a name": (HEAD + '- {name: "a\\x1b[2J", kind: Notification, match: x}', "f.yaml:3:"),
    "a lone surrogate": (HEAD + '- {name: "a\\ud800", kind: Notification, match: x}', "f.yaml:3:"),
    "a bidi override in a pattern": (HEAD + '- {name: a, kind: Notification, match: "custom/\\u202e"}', "f.yaml:3:"),
    "look-behind": (ALERTS + """'a=~"(?<=x)y"'}""", "f.yaml:3:"),
    "a back reference": (ALERTS + """'a=~"(a)\\\\1"'}""", "f.yaml:3:"),
    "repeats of repeats": (ALERTS + """'a=~"((a{1000}){1000}){1000}"'}""", "f.yaml:3:"),
    "an expression of 100 kB": (ALERTS + f"""'a=~"{"(a|b)*" * 15_000}"'}}""", "f.yaml:3:"),
    "a template with a format": (ALERTS + "'a=b', says: '{x.__class__}'}", "f.yaml:3:"),
    "a target that reaches into attributes": (
        "apiVersion: reactor/v1\nsources:\n- {name: am, kind: AlertmanagerWebhook, target: 'custom/{x[0]!r}'}",
        "f.yaml:3:",
    ),
    "a query that is not closed": (QUERY + "'sum(rate(x[5m])', unhealthyWhen: '> 1'}", "f.yaml:3:"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Python's libraries are loaded: what a file costs is the file's."""
    for command in ("check", "test"):
        CliRunner().invoke(cli, [command, "no.yaml"])


@pytest.mark.parametrize("name", FILES)
def test_a_bad_rule_file_is_told_with_its_place(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, place = FILES[name]
    Path("f.yaml").write_text(text, encoding="utf-8")
    for command in ("check", "test"):
        began = process_time()
        done = CliRunner().invoke(cli, [command, "f.yaml"])
        assert process_time() - began < CPU_SECONDS
        assert done.exit_code in (1, 2), done.output
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.output
        assert all(line.isprintable() for line in done.output.splitlines())
        assert len(done.output) < 1 << 20
        if command == "check":
            assert place in done.output, done.output[:2000]


@pytest.mark.parametrize("name", FILES)
def test_no_process_starts_with_a_bad_rule_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, place = FILES[name]
    Path("f.yaml").write_text(text, encoding="utf-8")
    Path("reactor.yaml").write_text("{ruleFiles: [f.yaml], receiver: {listen: '127.0.0.1:0'}}")
    began = process_time()
    done = CliRunner().invoke(cli, ["run", "-c", "reactor.yaml"])
    assert process_time() - began < CPU_SECONDS
    assert (done.exit_code, done.stdout) == (1, "")
    told = done.stderr.splitlines()
    assert any(line.removeprefix("reactor: ").startswith(place) for line in told), told[:3]
    assert all(line.isprintable() for line in told)
    assert len(done.stderr) < 1 << 20


PEAK = """
import resource, sys
from click.testing import CliRunner
from reactor.cli.main import cli

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

for name in sys.argv[1:]:
    before = peak()
    CliRunner().invoke(cli, ["check", name])
    print(name, peak() - before)
"""
"""The most memory that a process has had so far, in KiB, never falls: the first file is the good one."""


def test_no_bad_rule_file_takes_much_memory(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(NOTIFY + "}\n")
    for name, (text, _) in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", PEAK, "good", *FILES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    first, *others = (line.rpartition(" ") for line in done.stdout.splitlines())
    took = {name: int(kib) << 10 for name, _, kib in others}
    assert first[0] == "good"
    assert took.keys() == FILES.keys()
    assert {name: size for name, size in took.items() if size > MEMORY_BYTES} == {}


@pytest.mark.parametrize("text", [
    """'a=~"(a+)+$"'""", """'a=~"(a|aa)+$"'""", """'a!~"(.*)*x"'""",
])  # fmt: skip
def test_an_expression_that_hangs_others_costs_nothing(text: str, tmp_path: Path) -> None:
    from rules.rulefile.matchers import Matchers

    (tmp_path / "f.yaml").write_text(ALERTS + text + "}")
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "f.yaml")])
    assert not isinstance(done.exception, Exception), done.output
    began = process_time()
    Matchers.parse(text.strip("'")).matches({"a": "a" * 100_000 + "b"})
    assert process_time() - began < 5


def test_a_message_takes_words_and_nothing_else() -> None:
    from rules.rulefile.template import substitute

    hostile = "{target} {target.__class__} {0} {x!r:>99999999} {{y}} {} %s ${z} <script>"
    assert (
        substitute(hostile, {"target": "t", "y": "Y"})
        == "t {target.__class__} {0} {x!r:>99999999} {Y} {} %s ${z} <script>"
    )
