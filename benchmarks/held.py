"""Holds processes to a part of a core, by a control group of their own (root, cgroup v1 or v2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD = 100_000
"""Microseconds in which a group may use its quota."""


def why_not() -> str:
    """Reason why no process can be held to a part of a core here; empty: it can."""
    try:
        with _group("alert-reactor-bench-try", 0.5):
            return ""
    except OSError as error:
        return f"no control group for the processor: {error}"


@contextmanager
def held(pid: int, cores: float) -> Iterator[None]:
    """Let a process, and what it starts, use so many cores at most. Raises OSError."""
    with _group(f"alert-reactor-bench-{pid}", cores) as group:
        (group / "cgroup.procs").write_text(str(pid), "ascii")
        try:
            yield
        finally:
            above = (group.parent / "cgroup.procs").open("w", encoding="ascii")
            for one in (group / "cgroup.procs").read_text("ascii").split():
                print(one, file=above, flush=True)
            above.close()


@contextmanager
def _group(name: str, cores: float) -> Iterator[Path]:
    second = (ROOT / "cgroup.controllers").exists()
    group = (ROOT if second else ROOT / "cpu") / name
    group.mkdir()
    try:
        quota = str(int(cores * PERIOD))
        if second:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}", "ascii")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD), "ascii")
            (group / "cpu.cfs_quota_us").write_text(quota, "ascii")
        yield group
    finally:
        group.rmdir()
