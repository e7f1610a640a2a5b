"""`reactor test` of many files: each is a process's work, and the answer is that of one after the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from reactor.cli.main import cli

RULES = """apiVersion: reactor/v1
rules:
- name: {name}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: {name}}}
  backends: [{{service: {name}}}, {{service: west, target: custom/west}}]
  tolerationSeconds: 10
"""
TESTS = """apiVersion: reactor/v1
ruleFiles: [{name}.yaml]
tests:
- name: it leaves
  intervalSeconds: 5
  inputs:
  - {{target: service/east/shop/{name}, values: "Unhealthy x5"}}
  - {{target: custom/west, values: "Healthy x5"}}
  expect: [{{at: {at}, action: SetWeights}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, at in (("a", 10), ("b", 15), ("c", 10)):
        (tmp_path / f"{name}.yaml").write_text(RULES.format(name=name), "utf-8")
        (tmp_path / f"{name}_test.yaml").write_text(TESTS.format(name=name, at=at), "utf-8")
    (tmp_path / "d_test.yaml").write_text("apiVersion: reactor/v1\ntests: 1\n", "utf-8")
    return tmp_path


def test_files_side_by_side_say_what_files_one_after_the_other_say(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for processors in ({0}, {0, 1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, processors=processors: processors, raising=False)
        answers.append(CliRunner().invoke(cli, ["test", str(folder)]))
    alone, beside = answers
    assert (beside.exit_code, beside.stdout, beside.stderr) == (alone.exit_code, alone.stdout, alone.stderr)
    assert beside.exit_code == 1
    assert [line.split(":")[0].rpartition("/")[2] for line in beside.stdout.splitlines() if "it leaves" in line] == [
        "a_test.yaml", "b_test.yaml", "c_test.yaml",
    ]  # fmt: skip
    assert beside.stdout.splitlines()[-1] == "2 passed, 1 failed"
    assert "d_test.yaml" in beside.stderr
