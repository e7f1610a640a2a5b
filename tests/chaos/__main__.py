"""`python -m tests.chaos`: play faults and print the table."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import namespaces
from tests.chaos.faults import Fault, catalog
from tests.chaos.run import ROUTES, Result, play
from tests.chaos.table import table


def main() -> int:
    """Give the exit code: 1 where a promise was broken, 2 where a run gave no verdict or a fault is unknown."""
    arguments = _arguments()
    known = catalog()
    if arguments.list:
        print("\n".join(known))
        return 0
    given = [*known] if arguments.fault == "all" else arguments.fault.split(",")
    if unknown := [one for one in given if not any(_is_wanted(name, [one]) for name in known)]:
        print(f"chaos: no such fault: {', '.join(unknown)}; --list names all, outage: is all of them", file=sys.stderr)
        return 2
    wanted = [name for name in known if _is_wanted(name, given)]
    if arguments.one:
        results = _play(known[wanted[0]], arguments.seed, arguments)
        print(json.dumps([dataclasses.asdict(result) for result in results]))
        return 0
    from tests.chaos.pool import play_all

    [first, *more] = arguments.seed
    seeds = [first, *more] if more else range(first, first + arguments.seeds)
    began = time.monotonic()
    runs = [(name, seed) for name in wanted for seed in seeds]
    results = play_all(runs, jobs=arguments.jobs, routes=arguments.routes, keep=arguments.keep)
    print(table(results))
    print(f"{time.monotonic() - began:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(result) for result in results], indent=2), "utf-8")
    return 0 if all(result.good for result in results) else 2 if any(result.failed for result in results) else 1


def _play(fault: Fault, seeds: Sequence[int], arguments: argparse.Namespace) -> list[Result]:
    if reason := fault.lacks():
        return [Result(fault.name, seed, skipped=reason) for seed in seeds]
    os.environ["CHAOS_SCALE"] = str(fault.scale)  # of the reactors that are started from here
    if fault.apart:
        namespaces.go_apart()
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{fault.name.replace(':', '-')}-{seeds[0]}-"))
    results = asyncio.run(play(fault, seeds, folder, routes=arguments.routes))
    if arguments.keep:
        note = f"logs are in {folder}"
        return [dataclasses.replace(result, notes=[*result.notes, note]) for result in results]
    shutil.rmtree(folder)
    return results


def _is_wanted(name: str, given: Sequence[str]) -> bool:
    """True if the fault is named, or begins with a given name that ends with a colon."""
    return any(name == one or (one.endswith(":") and name.startswith(one)) for one in given)


def _seeds(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Real reactors under real faults.")
    parser.add_argument(
        "--fault", default="all", help="names, or beginnings up to a colon, separated by commas; or all"
    )
    parser.add_argument("--seed", type=_seeds, default=[1], help="the first seed, or some separated by commas")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds from the first one on")
    parser.add_argument("--jobs", type=int, default=2, help="how many worlds at once")
    parser.add_argument("--routes", type=int, default=ROUTES, help="how many routes a seed has")
    parser.add_argument("--json", type=Path, help="write all results here")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs, with the reactors' logs")
    parser.add_argument("--list", action="store_true", help="name the faults and end")
    parser.add_argument("--one", action="store_true", help="play one fault in this process, print JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
