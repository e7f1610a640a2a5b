"""Versions of Python and of real servers in a run of tests, for its junit report."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ASKED = {
    "nats-server": ("nats-server", "--version"),
    "Prometheus": ("prometheus", "--version"),
    "Alertmanager": ("alertmanager", "--version"),
    "HAProxy": ("haproxy", "-v"),
    "Chromium": ("chromium", "--version"),
    "kube-apiserver": ("kube-apiserver", "--version"),
    "Helm": ("helm", "version", "--short"),
    "nats": ("nats", "--version"),
    "Karmada": ("karmada-controller-manager", "version"),
    "k3s": ("k3s", "--version"),
}
DEBIAN = {"alertmanager": "prometheus-alertmanager"}
BUILT = ("KUBEBUILDER_ASSETS", "KARMADA_BINARIES")
"""Variables that name folders with servers."""
SCRIPTS = Path(__file__).parents[1] / "scripts"
NUMBER = re.compile(r"\d+\.\d+\.\d+[\w.+~-]*")


def found() -> Iterator[tuple[str, str]]:
    """Give what a report says of its run: place, commit, and the version of each program that tests would start."""
    place = "GitHub Actions" if os.environ.get("GITHUB_ACTIONS") else "by hand"
    yield "where", f"{place}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    yield "commit", _said("git", "rev-parse", "--short", "HEAD").strip()
    yield "Python", platform.python_version()
    for name, (program, *words) in ASKED.items():
        path = _first(program, DEBIAN.get(program, program))
        if path is not None and (number := NUMBER.search(_said(path, *words))):
            yield name, number[0]


def _built() -> Iterator[str]:
    """Give the folders of what tests find by the script that builds it."""
    for script in ("helm", "nats-cli"):
        if path := _said(str(SCRIPTS / script), "--built").strip():
            yield str(Path(path).parent)


def _first(*names: str) -> str | None:
    """As tests choose (tests/e2e/servers.py): what PATH has first, then what scripts/ has built."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *(os.environ.get(one, "") for one in BUILT), *_built()]
    return next(filter(None, (shutil.which(name, path=one) for one in folders if one for name in names)), None)


def _said(*words: str) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=30, cwd=Path(__file__).parents[1]
        )
    except OSError:
        return ""
    return done.stdout + done.stderr
