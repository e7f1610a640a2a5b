"""Many runs, some at once, each in a process of its own: one's busy event loop must not date another one's writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from tests.chaos.fleet import ROOT
from tests.chaos.run import Result

Key = tuple[str, int]
"""A fault's name and a seed."""
RUN_SECONDS_MAX = 400.0


def play_one(fault: str, seed: int, *, keep: bool = False) -> Result:
    """Play one run in a process of its own."""
    command = [sys.executable, "-m", "tests.chaos", "--one", "--fault", fault, "--seed", str(seed)]
    command += ["--keep"] if keep else []
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=RUN_SECONDS_MAX, check=True)
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", None) or b""
        return Result(fault, seed, failed=f"{error}: {said.decode(errors='replace')[-2000:]}")
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def start_all(runs: Sequence[Key], *, jobs: int, keep: bool = False) -> dict[Key, Future[Result]]:
    """Start all of them, so many at once, and give where their results will be."""
    pool = ThreadPoolExecutor(jobs)
    futures = {(fault, seed): pool.submit(play_one, fault, seed, keep=keep) for fault, seed in runs}
    pool.shutdown(wait=False)
    return futures


def play_all(runs: Sequence[Key], *, jobs: int, keep: bool = False) -> list[Result]:
    """Play all of them."""
    results = []
    for (fault, seed), future in start_all(runs, jobs=jobs, keep=keep).items():
        result = future.result()
        results.append(result)
        word = "skipped" if result.skipped else "NO VERDICT" if result.failed else "kept" if result.good else "BROKEN"
        print(f"{fault}, seed {seed}: {word}", file=sys.stderr, flush=True)
    return results
