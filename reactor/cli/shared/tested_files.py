"""Rule tests of several files side by side: each file is a process's work, as no file knows of another."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from reactor.cli.shared.files import read_text
from reactor.runtime.clock import Clock
from rules.core.errors import Problem
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.rule_tests.suite_loader import RuleTestSuite


@dataclass(frozen=True, slots=True)
class TestedFile:
    """The results of one file."""

    __test__ = False  # pytest would take it for tests of ours

    suite: RuleTestSuite
    problems: list[Problem]
    results: list[tester.RuleTestResult]
    seconds: list[float]
    """Seconds that each test took."""


def tested(name: str, text: str) -> TestedFile:
    """Run the tests of a file of this name and text."""
    clock, seconds = Clock(), list[float]()
    suite, problems = tester.examine(text, name, read_text)
    results, began = [], clock.monotonic()
    for result in tester.run(suite):
        results.append(result)
        seconds.append(clock.monotonic() - began)
        began = clock.monotonic()
    return TestedFile(suite, problems, results, seconds)


def all_tested(files: Iterable[tuple[str, str]]) -> Iterator[TestedFile]:
    """Run the tests of all these files, by name and text, on all processors, and give the results of each, in order."""
    files = list(files)
    workers = min(len(files), len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1)
    if workers < 2:
        yield from (tested(*file) for file in files)
        return
    # Forked, as all that they need is imported: a new process would take as long for that as for a hundred tests.
    # A Ctrl-C is for this process, which ends them: each would print its own traceback.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    context = get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=signal.signal, initargs=ignore) as pool:
        yield from pool.map(tested, *zip(*files, strict=True))
