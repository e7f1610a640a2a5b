"""What `make test` runs its tests with: nothing is lost or run twice, and a process that ends has failed its test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import os, pathlib, sys, time
import pytest

@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    yield folder
    pathlib.Path(os.environ["ENDED"], str(os.getpid())).touch()

@pytest.mark.parametrize("number", range(12))
def test_it(number, whole, tmp_path):
    assert tmp_path.parent == whole.parent

@pytest.mark.xdist_group("one process")
@pytest.mark.parametrize("number", range(3))
def test_group(number, record_property):
    record_property("process", os.getpid())

def test_fails():
    print("said before it failed")
    assert 1 == 2

def test_skipped():
    pytest.skip("not here")

@pytest.mark.xdist_group("killed")
def test_killed():
    os.kill(os.getpid(), 9)

@pytest.mark.xdist_group("killed")
def test_after_one_that_was_killed():
    pass

@pytest.mark.timeout(0.2, method="thread")
def test_hangs():
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ET.Element, Path]:
    """What it prints, its junit report, and a file for each process that tore down what belongs to the session."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "test_them.py").write_text(TESTS)
    (folder / "ended").mkdir()
    words = ["-p", "tests.side_by_side", "--side-by-side", "3", "-p", "no:cacheprovider", "-ra"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--junitxml", folder / "report.xml", folder / "test_them.py"],
        cwd=ROOT, env=os.environ | {"ENDED": str(folder / "ended")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout, ET.fromstring((folder / "report.xml").read_text()), folder / "ended"  # noqa: S314


def test_each_test_runs_once_and_is_told(run: tuple[str, ET.Element, Path]) -> None:
    said, report, _ = run
    assert "3 failed, 16 passed, 1 skipped" in said
    names = [case.get("name") for case in report.iter("testcase")]
    assert len(names) == len(set(names)) == 20
    assert "said before it failed" in said
    assert "not here" in said


def test_a_process_that_ends_has_failed_the_test_that_it_ran(run: tuple[str, ET.Element, Path]) -> None:
    assert "the process that ran this test ended with signal 9" in run[0]
    assert "the process that ran this test ended with exit code 1" in run[0]


def test_a_group_stays_together(run: tuple[str, ET.Element, Path]) -> None:
    cases = [case for case in run[1].iter("testcase") if str(case.get("name")).startswith("test_group")]
    assert len(cases) == 3
    assert len({one.get("value") for case in cases for one in case.iter("property")}) == 1


def test_what_belongs_to_the_session_is_torn_down_in_each_process_at_its_end(
    run: tuple[str, ET.Element, Path],
) -> None:
    assert 1 <= len([*run[2].iterdir()]) <= 3
