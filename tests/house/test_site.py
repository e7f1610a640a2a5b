"""The documentation as a site: what llms.txt lists for machines is there after a build."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.house.test_deploy_files import ROOT


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
