"""Promises of tests/grouped.py, by a run of pytest with two workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOGETHER = """
import os, pathlib, pytest
pytestmark = pytest.mark.xdist_group("one of something")
@pytest.mark.parametrize("number", range(8))
def test_it(number: int) -> None:
    with pathlib.Path(__file__).with_suffix(".pids").open("a") as file:
        file.write(f"{os.getpid()}\\n")
"""


@pytest.mark.long
def test_tests_of_a_file_that_names_a_group_run_in_one_worker_and_others_in_any(tmp_path: Path) -> None:
    (tmp_path / "test_together.py").write_text(TOGETHER)
    (tmp_path / "test_apart.py").write_text(
        TOGETHER.replace('pytestmark = pytest.mark.xdist_group("one of something")', "")
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["-p", "xdist", "-p", "tests.grouped", "--numprocesses", "2", "--dist", "loadgroup", "-q"]
    words.append("--no-loadscope-reorder")
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # three processes would import them all
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=Path(__file__).parents[2], env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 passed" in done.stdout
    assert len(set((tmp_path / "test_together.pids").read_text().split())) == 1
    assert len(set((tmp_path / "test_apart.pids").read_text().split())) == 2
