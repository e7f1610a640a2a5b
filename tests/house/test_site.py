"""The documentation as a site: what llms.txt lists for machines is there after a build."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.house.test_deploy_files import ROOT
from tests.house.test_workflows import git

DEPLOY = ROOT / "scripts/deploy-docs"


def test_each_link_of_llms_txt_leads_to_a_page_as_markdown(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = (tmp_path / "llms.txt").read_text("utf-8")
    places = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .+\.$", listed, re.MULTILINE)
    assert len(places) == listed.count("\n- "), "a line has no title, no link or no sentence"
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(places) == pages
    everything = (tmp_path / "llms-full.txt").read_text("utf-8")
    for place in places:
        text = (ROOT / "docs" / place).read_text("utf-8")
        assert (tmp_path / place).read_text("utf-8") == text, place
        assert text in everything, place


def deployed(here: Path, ref: str) -> dict[str, list[str]]:
    """Deploy a ref; gives the versions of the site with their aliases."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PATH": path}
    done = subprocess.run([DEPLOY, ref], cwd=here, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {one["version"]: one["aliases"] for one in json.loads(git(here, "show", "gh-pages:versions.json"))}


def test_a_release_is_a_version_of_the_site_and_main_is_dev(tmp_path: Path) -> None:
    """On a small site: what mkdocs makes of ours, the test above shows."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@example.org")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: small\nsite_dir: build/site\nplugins: [mike]\n")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "one")
    assert deployed(tmp_path, "refs/heads/main") == {"dev": []}
    assert "dev" in git(tmp_path, "show", "gh-pages:index.html")
    git(tmp_path, "tag", "v0.1.0")
    assert deployed(tmp_path, "refs/tags/v0.1.0") == {"dev": [], "0.1": ["latest"]}
    git(tmp_path, "tag", "v0.2.0")
    assert deployed(tmp_path, "refs/tags/v0.2.0") == {"dev": [], "0.2": ["latest"], "0.1": []}
    assert deployed(tmp_path, "refs/tags/v0.1.0")["0.2"] == ["latest"], (
        "a correction of an older release is not the latest"
    )
    assert deployed(tmp_path, "refs/tags/v0.3.0rc1")["0.2"] == ["latest"]
    assert "latest" in git(tmp_path, "show", "gh-pages:index.html")
    assert deployed(tmp_path, "refs/heads/main")["dev"] == []
    assert "latest" in git(tmp_path, "show", "gh-pages:index.html"), "the site begins with the newest release"
