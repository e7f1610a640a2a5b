"""Tests that share what their file starts run in one worker: `pytestmark = pytest.mark.xdist_group(...)`.

pytest-xdist tells the groups apart by a suffix that it adds to the ids of tests. Since pytest 9.2 ids are not kept
where it puts that: each worker made its own of what was to be shared, up to ten reactors and ten backtests of a month.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]  # xdist has no types
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]  # as above


class FileByFile(LoadGroupScheduling):  # type: ignore[misc]  # as above
    """Gives each test to any worker, and all of a file that names a group to one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _names_a_group(self.config.rootpath / file) else nodeid


@cache
def _names_a_group(file: Path) -> bool:
    return "mark.xdist_group(" in file.read_text("utf-8")


@pytest.hookimpl(optionalhook=True)  # -p no:xdist knows no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """None: another way to hand out tests was asked for, which is not ours to change."""
    return FileByFile(config, log) if config.getvalue("dist") == "loadgroup" else None
