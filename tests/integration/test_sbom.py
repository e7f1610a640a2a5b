"""scripts/sbom, run: what a release says it is made of is what its lock file names, each part with its licence."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNREACHED = re.compile(r"Could not find a version|No matching distribution|Max retries|Temporary failure|Connection")
"""Message of pip where no package index answers."""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_list_of_parts_has_each_locked_package_with_its_licence(tmp_path: Path) -> None:
    words = [ROOT / "scripts/sbom", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0 and UNREACHED.search(done.stderr):
        pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    bom = json.loads((tmp_path / "sbom.cdx.json").read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    us = bom["metadata"]["component"]
    assert (us["name"], us["version"]) == (project["name"], project["version"])
    locked = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    parts = {(named(one["name"]), one["version"]) for one in bom["components"]}
    assert parts <= {(named(name), version) for name, version in locked}, "it lists a package that is not locked"
    needed = {named(re.split(r"[\[<>=~!; ]", one)[0]) for one in project["dependencies"]}
    assert needed <= {name for name, _ in parts}
    licences = (tmp_path / "licences.txt").read_text()
    missing = [one["name"] for one in bom["components"] if f"\n{one['name']}\n" not in f"\n{licences}"]
    assert missing == [], "a part without its licence"


def named(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
