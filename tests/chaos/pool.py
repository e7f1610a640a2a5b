"""Many runs, some at once, each in a process of its own: one's busy event loop must not date another one's writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from tests.chaos.faults import Fault, Outage, catalog
from tests.chaos.nursery import ROOT
from tests.chaos.run import ROUTES, Result

T = TypeVar("T")
Key = tuple[str, int]
"""A fault's name and a seed."""
Runs = dict[Key, "Future[dict[int, Result]]"]
"""For each seed of each fault, the run that it is part of."""
SEEDS_TOGETHER = 5
"""Number of seeds that share a world, one after the other."""
LONG = 30.0
"""Seconds of script: so long a fault has fewer seeds to a world, or its run would be the one that all wait for."""
OVERHEAD_SECONDS = 180.0
HEAVY_JOBS = 2
"""Number of worlds of heavy faults that are played at once."""

AGAIN = 2
"""Number of times that a seed is played again that broke a promise while this machine delayed the truth itself."""


def play_some(fault: Fault, seeds: Sequence[int], *, routes: int = ROUTES, keep: bool = False) -> dict[int, Result]:
    """Play these seeds in one world; those that give no verdict again, each in a world of its own."""
    results = _play_together(fault, seeds, routes=routes, keep=keep)
    for seed in seeds:
        for _ in range(AGAIN):
            if results[seed].breaches and results[seed].stood_still:
                results[seed] = _again(results[seed], _play_together(fault, [seed], routes=routes, keep=keep)[seed])
    return results


def _again(before: Result, result: Result) -> Result:
    why = f"this machine let the truth stand still for {before.stood_still:.1f} s, so it was played again"
    notes = [*before.notes, why, *(f"then: {one}" for one in before.breaches), *result.notes]
    return replace(result, mistakes=[*before.mistakes, *result.mistakes], notes=notes)


def _play_together(fault: Fault, seeds: Sequence[int], *, routes: int, keep: bool) -> dict[int, Result]:
    command = [sys.executable, "-m", "tests.chaos", "--one", "--fault", fault.name]
    command += ["--seed", ",".join(map(str, seeds)), "--routes", str(routes), *(["--keep"] if keep else [])]
    limit = OVERHEAD_SECONDS + 4 * fault.seconds * len(seeds)
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=limit, check=True)
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", None) or b""
        failed = f"{error}: {said.decode(errors='replace')[-2000:]}"
        return {seed: Result(fault.name, seed, failed=failed) for seed in seeds}
    results = [Result(**one) for one in json.loads(done.stdout.splitlines()[-1])]
    return {result.seed: result for result in results}


def start_all(runs: Sequence[Key], *, jobs: int, routes: int = ROUTES, keep: bool = False) -> Runs:
    """Start all of them, so many at once and the longest first, those of heavy faults when all others have ended; give
    where their results will be."""
    worlds = sorted(_worlds(runs), key=lambda one: (one[0].heavy, -one[0].seconds * len(one[1])))
    pool, few = ThreadPoolExecutor(jobs), ThreadPoolExecutor(min(jobs, HEAVY_JOBS))
    others: list[Future[dict[int, Result]]] = []
    futures: Runs = {}
    for fault, seeds in worlds:
        played = partial(play_some, fault, seeds, routes=routes, keep=keep)
        if fault.heavy:
            future = few.submit(_after, others, played)
        else:
            others.append(future := pool.submit(played))
        futures.update({(fault.name, seed): future for seed in seeds})
    for one in (pool, few):
        one.shutdown(wait=False)
    return futures


def _after(others: Sequence[Future[T]], play: Callable[[], T]) -> T:
    wait(others)
    return play()


def _worlds(runs: Sequence[Key]) -> list[tuple[Fault, list[int]]]:
    known, out = catalog(), []
    for name, keys in groupby(sorted(runs), key=lambda key: key[0]):
        seeds, fault = [seed for _, seed in keys], known[name]
        size = 1 if isinstance(fault, Outage) else SEEDS_TOGETHER if fault.seconds < LONG else SEEDS_TOGETHER // 2
        out += [(fault, seeds[at : at + size]) for at in range(0, len(seeds), size)]
    return out


def play_all(runs: Sequence[Key], *, jobs: int, routes: int = ROUTES, keep: bool = False) -> list[Result]:
    """Play all of them, and tell of each when it is done."""
    futures = start_all(runs, jobs=jobs, routes=routes, keep=keep)
    for world in as_completed(set(futures.values())):
        for result in world.result().values():
            print(f"{result.fault}, seed {result.seed}: {result.word}", file=sys.stderr, flush=True)
    return [futures[fault, seed].result()[seed] for fault, seed in runs]
