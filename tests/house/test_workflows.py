"""The workflows of GitHub: their form, their rights, and that a release refuses what is not pinned."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import versions

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
    for name in ("docs.yml", "image.yml", "release.yml"):
        runs = [step["run"] for step in steps(ROOT / ".github/workflows" / name) if "run" in step]
        assert "scripts/pin-digests --check" in runs, name
    done = subprocess.run([ROOT / "scripts/pin-digests", "--check"], capture_output=True, text=True, check=False)
    loose = {step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    loose = {one for one in loose if not re.search(r"@[0-9a-f]{40}$", one)}
    loose |= set(re.findall(r"^FROM (\S+?:[\w.-]+)(?: |$)", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE))
    named = {line.partition(".yml: ")[2] or line.partition("Dockerfile: ")[2] for line in done.stderr.splitlines()}
    assert named == loose
    assert (done.returncode == 1) == bool(loose)


def test_a_report_says_the_version_of_each_server_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in (program for program, *_ in versions.ASKED.values()):
        (tmp_path / program).write_text("#!/bin/sh\necho says v1.2.3-rc.0 of itself\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    said = dict(versions.found())
    assert {"Karmada", "nats", "k3s"} <= said.keys()
    assert {said[name] for name in versions.ASKED} == {"1.2.3-rc.0"}


def test_the_chart_is_tested_wherever_tests_run() -> None:
    """Rendered for each change, installed each night and in .ci/run. Pods with mounts of their own need root."""
    assert "scripts/helm" in [step.get("run") for step in steps(ROOT / ".github/workflows/test.yml")]
    nightly = [step.get("run", "") for step in steps(ROOT / ".github/workflows/prove.yml")]
    assert 'sudo -E env "PATH=$PATH" make kube' in nightly
    [line] = [line for line in (ROOT / ".ci/run").read_text().splitlines() if "ARGS=" in line]
    assert {"tests/e2e/test_chart.py", "tests/e2e/test_quickstart.py"} <= {*line.split()}
    [default] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "call REPORT,kube)" in line]
    assert {"tests/e2e/test_chart.py", "tests/e2e/test_quickstart.py"} <= {*default.split()}


def test_the_reports_of_each_run_are_kept() -> None:
    for name in ("test.yml", "prove.yml"):
        for job, content in yaml.safe_load((ROOT / ".github/workflows" / name).read_text())["jobs"].items():
            runs = [step.get("run", "") for step in content["steps"]]
            if any("gen-test-report" in one for one in runs):
                kept = [step["with"]["path"] for step in content["steps"] if "upload-artifact" in step.get("uses", "")]
                assert "build/reports" in kept, job
    assert "export REPORTS=" in (ROOT / ".ci/run").read_text()


def test_actions_are_used_by_a_release_which_can_be_pinned() -> None:
    """A branch moves, and `git ls-remote` of a tag does not find it."""
    used = {step["uses"].partition("@")[2] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    assert [one for one in used if not re.fullmatch(r"v\d+(\.\d+)*|[0-9a-f]{40}", one)] == []


def git(folder: Path, *words: str) -> str:
    ours = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    ]
    done = subprocess.run(["git", *ours, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_what_is_pinned_is_the_commit_behind_a_tag(tmp_path: Path) -> None:
    action = tmp_path / "servers/acme/act"
    action.mkdir(parents=True)
    git(action, "init", "--quiet")
    git(action, "commit", "--quiet", "--allow-empty", "--message", "one")
    git(action, "tag", "--annotate", "v1", "--message", "v1")
    git(action, "branch", "release/v1")
    commit = git(action, "rev-parse", "HEAD")
    here = tmp_path / "checkout"
    for name in ("scripts", "deploy", ".github/workflows"):
        (here / name).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/pin-digests", here / "scripts")
    pinned = f"FROM python:3.13-slim@sha256:{'0' * 64} AS build\n"
    (here / "deploy/Dockerfile").write_text(pinned)
    workflow = here / ".github/workflows/a.yml"
    workflow.write_text(
        "- uses: acme/act@v1\n- uses: acme/act/sub@v1\n- uses: acme/act@release/v1\n- uses: acme/none@v1\n"
    )
    instead = {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/servers/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }  # fmt: skip
    script = [sys.executable, str(here / "scripts/pin-digests")]
    done = subprocess.run(script, env=os.environ | instead, capture_output=True, text=True, check=False)
    assert workflow.read_text() == (
        f"- uses: acme/act@{commit} # v1\n- uses: acme/act/sub@{commit} # v1\n"
        "- uses: acme/act@release/v1\n- uses: acme/none@v1\n"
    )
    assert (here / "deploy/Dockerfile").read_text() == pinned
    assert done.returncode == 1
    assert "acme/act has no tag release/v1" in done.stderr
    assert "a.yml: acme/none@v1" in done.stderr
    assert len(done.stderr.splitlines()) >= 2


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


def test_the_page_in_the_documentation_is_one_that_the_script_writes() -> None:
    """It is as old as the runs that it tells of: it is never changed by hand, and it names no folder of a machine."""
    written = runpy.run_path(str(ROOT / "scripts/gen-test-report"))
    page = (ROOT / "docs/reference/what-was-run.md").read_text()
    assert page.startswith(written["HEAD"])
    counts = r" \| (\d+) \| \d+ \| \d+ \|$"
    rows = re.findall(r"^\| ([^|]+?) \|.*\| [0-9a-f]{7,} \| \d+" + counts, page, re.MULTILINE)
    assert rows
    for what, failed in rows:
        assert what in written["WHAT"].values()
        assert failed == "0", what
