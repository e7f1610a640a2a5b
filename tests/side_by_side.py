"""A plugin of pytest that runs tests in several processes, which are forked once all tests are collected.

    python -m pytest -p tests.side_by_side --side-by-side 10 tests/e2e

To import and collect all tests takes ten seconds of a processor, and each worker of pytest-xdist does so for itself.
Here it is done once, and workers share what was imported. A worker that is free gets the next test in the order of
collection; tests of one `xdist_group` run in one worker, with `--keep-files` those of a file, too. A worker that ends
in the middle of a test has failed that test, and another one takes its place.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any, cast

import pytest
from _pytest.junitxml import xml_key

from tests.e2e.forked import share_forks
from tests.e2e.processes import end_with_us

Chunk = list[int]
"""Places of tests in the list of all: one worker runs them one after the other."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `--help` lists."""
    group = parser.getgroup("side_by_side", "tests side by side, in forked processes")
    group.addoption("--side-by-side", type=int, default=0, metavar="N", help="Run tests in N forked processes.")
    group.addoption("--keep-files", action="store_true", help="Run the tests of a file in one process.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests; None: pytest does so itself."""
    workers, config = session.config.getoption("side_by_side"), session.config
    if not workers or config.option.collectonly or session.testsfailed:
        return None
    threads = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
    assert not threads, f"{threads} were started as tests were imported: they would be missing in forked processes"
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    reporter.showfspath = False  # a letter for each test, without its file
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    if "tests.e2e.service" in sys.modules:  # a test starts reactors
        share_forks()
    gc.collect()
    gc.freeze()  # what was collected is shared, and no collector looks through it again
    Pool(session, chunks(session.items, keep_files=config.option.keep_files), workers).run()
    return True


def chunks(items: Iterable[pytest.Item], *, keep_files: bool) -> list[Chunk]:
    """Give which tests run in one process, in the order of the first of each."""
    found: dict[object, Chunk] = {}
    for place, item in enumerate(items):
        group = item.get_closest_marker("xdist_group")
        key: object = (group.args or group.kwargs.values()) if group else item.path if keep_files else place
        found.setdefault(str(key) if group else key, []).append(place)
    return list(found.values())


@dataclass
class _Worker:
    pid: int
    to: Connection
    left: deque[int] = field(default_factory=deque)
    """Tests that it was given and has not ended; it runs the first one."""


class Pool:
    """Forks workers, hands out tests, and tells pytest what workers report."""

    def __init__(self, session: pytest.Session, todo: Iterable[Chunk], size: int) -> None:
        self._session, self._todo = session, deque(todo)
        self._size = min(size, len(self._todo))
        self._workers: dict[Connection, _Worker] = {}
        self._begun = 0

    def run(self) -> None:
        """Come back when all tests have run. Raises what ends a run early, such as `--exitfirst`."""
        session = self._session
        try:
            for _ in range(self._size):
                self._start()
            while self._workers:
                for ready in wait(list(self._workers)):
                    self._hear(self._workers[cast("Connection", ready)])
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        finally:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    def _start(self) -> None:
        ours, theirs = Pipe()
        self._begun += 1
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            theirs.close()
            self._workers[ours] = _Worker(pid, ours)
            return
        try:
            for one in (ours, *self._workers):
                one.close()
            _work(self._session, theirs, f"worker-{self._begun}")
        except BaseException:  # noqa: BLE001 - whatever it is: this process must not go on as its parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def _hear(self, worker: _Worker) -> None:
        try:
            hook, given = worker.to.recv()
        except (EOFError, ConnectionError):
            self._ended(worker)
            return
        if not hook:
            worker.left.extend(self._todo.popleft() if self._todo else ())
            worker.to.send(list(worker.left))
            return
        config = self._session.config
        if hook == "pytest_runtest_logreport":
            given = {"report": config.hook.pytest_report_from_serializable(config=config, data=given["report"])}
        getattr(config.hook, hook)(**given)
        if hook == "pytest_runtest_logfinish":
            worker.left.popleft()

    def _ended(self, worker: _Worker) -> None:
        del self._workers[worker.to]
        worker.to.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.left:
            return
        item, hook = self._session.items[worker.left.popleft()], self._session.config.hook
        said = f"the process that ran this test ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        hook.pytest_runtest_logreport(report=pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call"))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if worker.left:
            self._todo.appendleft(list(worker.left))
        if self._todo:
            self._start()


class _Reports:
    """Stands in a worker for what prints: it sends each report to the process that does."""

    def __init__(self, config: pytest.Config, to: Connection) -> None:
        self._config, self._to = config, to

    def _send(self, hook: str, given: Mapping[str, Any]) -> None:
        self._to.send((hook, given))

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._send("pytest_runtest_logstart", {"nodeid": nodeid, "location": location})

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._send("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._send("pytest_runtest_logreport", {"report": data})


def _work(session: pytest.Session, to: Connection, name: str) -> None:
    """Run what the pool gives, until that is nothing. What is torn down after the last test of a chunk is everything
    but what belongs to the whole session."""
    (end_with_us() or (lambda: None))()
    _settle(session.config, to, name)
    while True:
        to.send(("", {}))
        chunk: Chunk = to.recv()
        if not chunk:
            break
        items = [session.items[place] for place in chunk]
        for item, following in zip(items, [*items[1:], session], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    session._setupstate.teardown_exact(None)


def _settle(config: pytest.Config, to: Connection, name: str) -> None:
    """Give this process output, temporary folders and reports of its own."""
    plugins: Any = config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / name
    folders._basetemp.mkdir(mode=0o700)
    if (xml := config.stash.get(xml_key, None)) is not None:
        plugins.unregister(xml)
        del config.stash[xml_key]
    terminal = plugins.unregister(name="terminalreporter")
    plugins.register(SimpleNamespace(_tw=terminal._tw), "terminalreporter")  # pytest-timeout writes with it
    plugins.register(_Reports(config, to))
