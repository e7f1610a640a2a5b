"""The nats command, where scripts/nats-cli has built it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def nats() -> Path | None:
    """Give its path; None where it was not built."""
    done = subprocess.run([ROOT / "scripts/nats-cli", "--built"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def why_not() -> str:
    """Say why there is none; "" where there is one."""
    return "" if nats() else "the nats command was not built: scripts/nats-cli builds it, with Go"
