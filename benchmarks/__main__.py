"""Run benchmarks: `python -m benchmarks [NAME…] [--json FILE]`. Without names, all of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from benchmarks import (
    backtest_speed,
    beside_linkerd,
    observations_speed,
    page_speed,
    probe_speed,
    reaction_speed,
    refresh_speed,
    rest_speed,
    rule_tests_speed,
    rules_many,
    rules_speed,
    scaling_speed,
    storm_speed,
    traffic_speed,
    webhook_speed,
    windows_speed,
    workload_speed,
)
from benchmarks.measure import Result

ALL: dict[str, Callable[[], Result | Coroutine[Any, Any, Result]]] = {
    "load": rules_speed.load_rules,
    "decide": rules_speed.decide,
    "many-rules": rules_many.many_rules,
    "simulate": rules_speed.simulate,
    "rule-tests": rule_tests_speed.rule_tests,
    "event-to-patch": traffic_speed.event_to_patch,
    "probe-to-patch": probe_speed.probe_to_patch,
    "mass-move": traffic_speed.mass_move,
    "webhook-to-action": webhook_speed.webhook_to_action,
    "observation-to-action": reaction_speed.observation_to_action,
    "storm": storm_speed.storm,
    "windows": windows_speed.windows,
    "restart": windows_speed.restart,
    "observations": observations_speed.observations,
    "scaling": scaling_speed.scaling,
    "idle": rest_speed.idle,
    "start": rest_speed.start,
    "cluster-loss": workload_speed.cluster_loss,
    "backtest": backtest_speed.backtest,
    "beside-linkerd-failover": beside_linkerd.beside_linkerd_failover,
    "page": page_speed.page,
    "refresh": refresh_speed.refreshing,
}


def main() -> None:
    """Measure, print as it goes, and write JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ALL)}")
    parser.add_argument("--json", type=Path, help="write the results here as well")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed reactor has its bytecode
    if unknown := set(given.names) - ALL.keys():
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    results: list[Result] = []
    for name in given.names or ALL:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            outcome = ALL[name]()
            result = outcome if isinstance(outcome, Result) else asyncio.run(outcome)
        except TimeoutError as error:  # the others are measured all the same
            result = Result(name, "not measured", {"failed": str(error) or "it took too long"})
        results.append(result)
        print(f"  {json.dumps(result.figures)}", file=sys.stderr, flush=True)
    report = {
        "machine": {"python": platform.python_version(), "cores": os.cpu_count(), "load": os.getloadavg()},
        "results": [result.as_json() for result in results],
    }
    text = json.dumps(report, indent=2)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
