"""helm for tests, where scripts/helm has built it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/alert-reactor"


@cache
def helm() -> Path | None:
    """Give the path of helm; None where it was not built."""
    done = subprocess.run([ROOT / "scripts/helm", "--built"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def why_no_helm() -> str:
    """Say why there is no helm; "" when there is."""
    return "" if helm() else "helm was not built: scripts/helm builds it, with Go"


def rendered(*words: str | Path) -> list[Any]:
    """Give the objects of the chart with these options of helm, as release `reactor` in the namespace `reactor`."""
    command = [helm(), "template", "reactor", CHART, "--namespace", "reactor", *words]
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]
