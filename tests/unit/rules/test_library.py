"""The ready-made rule files: each is quiet under check, proves what it promises, and starts carefully."""

from __future__ import annotations

from pathlib import Path

import pytest

import rules
from rules.kinds.notification.model import Notification
from rules.loader import examine, load_rules
from rules.rehearsal.rule_tests import tester

LIBRARY = Path(rules.__file__).parent / "library"
FILES = sorted(file for file in LIBRARY.glob("*.yaml") if not file.stem.endswith("_test"))


def name(path: Path) -> str:
    return path.name


def test_the_library_is_there() -> None:
    assert len(FILES) >= 12


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_library_file_is_read_without_a_word(path: Path) -> None:
    reading = examine([(path.name, path.read_text())])
    assert (reading.problems, reading.hints()) == ([], [])


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_library_file_proves_what_it_promises(path: Path) -> None:
    beside = path.with_name(f"{path.stem}_test.yaml")
    suite = tester.load_suite(beside.read_text(), str(beside), lambda file: Path(file).read_text())
    assert suite.warnings == ()
    results = list(tester.run(suite))
    assert len(results) >= 2
    assert [result.name for result in results if not result.passed] == []


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_library_rule_that_acts_starts_as_a_dry_run(path: Path) -> None:
    for rule in load_rules([(path.name, path.read_text())]).rules:
        assert isinstance(rule, Notification) or rule.mode == "DryRun"


def test_all_library_files_can_be_used_together() -> None:
    reading = examine([(path.name, path.read_text()) for path in FILES])
    assert (reading.problems, reading.hints()) == ([], [])
    assert len(reading.rules) >= len(FILES)
