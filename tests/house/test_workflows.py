"""The workflows of GitHub: their form, their rights, and that a release refuses what is not pinned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def steps(path: Path) -> list[Any]:
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


def test_each_follows_the_schema_of_github() -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*words, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_says_what_it_may_do_and_ends() -> None:
    for path in WORKFLOWS:
        content = yaml.safe_load(path.read_text())
        assert content["permissions"]["contents"] == "read", path.name
        assert all("timeout-minutes" in job for job in content["jobs"].values()), path.name


def test_the_pictures_of_the_tests_are_kept() -> None:
    found = steps(ROOT / ".github/workflows/test.yml")
    [made] = [step["env"]["REACTOR_SCREENSHOTS"] for step in found if step.get("run") == "make test"]
    assert made in [step["with"].get("path") for step in found if "upload-artifact" in step.get("uses", "")]


def test_what_is_released_is_refused_while_something_is_not_pinned() -> None:
    for name in ("image.yml", "release.yml"):
        runs = [step["run"] for step in steps(ROOT / ".github/workflows" / name) if "run" in step]
        assert "scripts/pin-digests --check" in runs, name
    done = subprocess.run([ROOT / "scripts/pin-digests", "--check"], capture_output=True, text=True, check=False)
    loose = {step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    loose = {one for one in loose if not re.search(r"@[0-9a-f]{40}$", one)}
    loose |= set(re.findall(r"^FROM (\S+?:[\w.-]+)(?: |$)", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE))
    named = {line.partition(".yml: ")[2] or line.partition("Dockerfile: ")[2] for line in done.stderr.splitlines()}
    assert named == loose
    assert (done.returncode == 1) == bool(loose)


def test_the_page_of_what_was_run_counts_what_the_reports_say(tmp_path: Path) -> None:
    case = '<testcase name="a"/><testcase name="b"><skipped message="no Go"/></testcase>'
    said = (
        '<properties><property name="commit" value="abc1234"/><property name="Prometheus" value="3.16.0"/></properties>'
    )
    (tmp_path / "kube.xml").write_text(
        '<testsuites><testsuite name="pytest" errors="0" failures="1" skipped="1" tests="3" time="2.4" '
        f'timestamp="2026-11-24T16:44:00.1+00:00">{said}{case}</testsuite></testsuites>'
    )
    words = [sys.executable, str(ROOT / "scripts/gen-test-report"), str(tmp_path)]
    page = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "| a real Kubernetes API server |  | 2026-11-24 16:44 | abc1234 | 1 | 1 | 1 | 2 |" in page
    assert "| a real Kubernetes API server | 3.16.0 |" in page
    assert "| 1 | no Go |" in page
