"""The code of the earlier release, as its users have it: a wheel that is built from the commit of that release."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = "0.1.0"
COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")


def _git(*words: str) -> str:
    """Give what git says in one line; "" where it fails, is not here, or this is no checkout."""
    git = shutil.which("git")
    if git is None:
        return ""
    done = subprocess.run([git, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def commit() -> str:
    """Give the commit of the earlier release; "" where nothing tells it.

    In this order: REACTOR_EARLIER, the commit that CHANGELOG.md names in the release's heading or the paragraph below,
    the tag of the release, and the commit that brought the heading.
    """
    heading = re.search(
        rf"^## \[{re.escape(VERSION)}\].*\n\n.*$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    named = COMMIT.search(heading[0]) if heading else None
    brought = _git("log", "--reverse", "--format=%H", f"-S## [{VERSION}]", "--", "CHANGELOG.md") if heading else ""
    for one in (os.environ.get("REACTOR_EARLIER", ""), named[0] if named else "", f"v{VERSION}", *brought.split()[:1]):
        if one and (found := _git("rev-parse", "--verify", "--quiet", f"{one}^{{commit}}")):
            return found
    return ""


def lacks() -> str:
    """Say why there is no earlier release here; "" when there is one."""
    if commit():
        return ""
    return f"no release {VERSION}: neither CHANGELOG.md nor a tag says its commit (REACTOR_EARLIER=<commit> does)"


def installed(folder: Path) -> Path:
    """Build the wheel of the earlier release and install it; give the folder with its packages and its own tests."""
    source, site = folder / "source", folder / "site"
    source.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", commit()], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=source, input=packed.stdout, check=True)
    _python(source, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder / "wheel")
    (wheel,) = (folder / "wheel").glob("*.whl")
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps")
    _python(folder, *pip, "--target", site, wheel)
    shutil.copytree(source / "tests", site / "tests")
    return site


def _python(folder: Path, *words: str | Path) -> None:
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
