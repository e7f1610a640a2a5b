"""`python -m tests.chaos`: play faults and print the table."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.faults import Fault, catalog
from tests.chaos.fleet import NotUp
from tests.chaos.run import ROUTES, Result, play
from tests.chaos.table import table


def main() -> int:
    """Give the exit code: 1 where a promise was broken, 2 where a run gave no verdict."""
    arguments = _arguments()
    known = catalog()
    if arguments.list:
        print("\n".join(known))
        return 0
    wanted = list(known) if arguments.fault == "all" else arguments.fault.split(",")
    if arguments.one:
        print(json.dumps(dataclasses.asdict(_play(known[wanted[0]], arguments.seed, arguments))))
        return 0
    from tests.chaos.pool import play_all

    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    results = play_all([(name, seed) for seed in seeds for name in wanted], jobs=arguments.jobs, keep=arguments.keep)
    print(table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(result) for result in results], indent=2), "utf-8")
    return 0 if all(result.good for result in results) else 2 if any(result.failed for result in results) else 1


def _play(fault: Fault, seed: int, arguments: argparse.Namespace) -> Result:
    if reason := fault.lacks():
        return Result(fault.name, seed, skipped=reason)
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{fault.name.replace(':', '-')}-{seed}-"))
    try:
        result = asyncio.run(play(fault, seed, folder, routes=arguments.routes))
    except (NotUp, TimeoutError, ExceptionGroup) as error:
        result = Result(fault.name, seed, failed=repr(error))
    if arguments.keep:
        return dataclasses.replace(result, notes=[*result.notes, f"logs are in {folder}"])
    shutil.rmtree(folder)
    return result


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Real reactors under real faults.")
    parser.add_argument("--fault", default="all", help="names separated by commas, or all")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at once")
    parser.add_argument("--routes", type=int, default=ROUTES, help="how many routes a run has")
    parser.add_argument("--json", type=Path, help="write all results here")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs, with the reactors' logs")
    parser.add_argument("--list", action="store_true", help="name the faults and end")
    parser.add_argument("--one", action="store_true", help="play one fault and seed in this process, print JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
