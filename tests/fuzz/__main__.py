"""Fuzz one target after the other: python -m tests.fuzz --seconds 60. Ends with 1 where one had a finding.

A finding is written to `.fuzz/<target>/crash-…`. Replay it with `python -m tests.fuzz --target <target> --replay FILE`;
mend what it shows, then put the file into `tests/fuzz/seeds/<target>/`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"
KEPT = Path(".fuzz")
TARGETS = ("tokens", "matchers", "templates", "yaml", "webhooks", "messages")
MOST_BYTES = 8192
MOST_SECONDS = 10
MOST_MEGABYTES = 1024
ONE = "--one"


def main(words: list[str]) -> int:
    """Give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for all of them together (default: 60)")
    parser.add_argument("--replay", type=Path, help="run one target on this file only")
    asked = parser.parse_args(words)
    names = asked.target or TARGETS
    if asked.replay is not None:
        from tests.fuzz import targets

        targets.TARGETS[names[0]](asked.replay.read_bytes())
        return 0
    return max(run(name, max(1, asked.seconds // len(names)), KEPT / name) for name in names)


def run(name: str, seconds: int, kept: Path) -> int:
    """Fuzz one target in a process of its own: a finding ends it. Gives its exit code."""
    kept.mkdir(parents=True, exist_ok=True)
    print(f"fuzzing {name} for {seconds} s", flush=True)
    limits = [f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", f"-timeout={MOST_SECONDS}",
              f"-rss_limit_mb={MOST_MEGABYTES}", f"-artifact_prefix={kept}/", "-print_final_stats=1"]  # fmt: skip
    command = [sys.executable, "-m", "tests.fuzz", ONE, name, *limits, str(kept), str(SEEDS / name)]
    return subprocess.run(command, check=False).returncode


def fuzz(name: str, words: list[str]) -> None:
    """Fuzz in this process, until libFuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["bus", "rules", "reactor"], enable_loader_override=False):
        from tests.fuzz import targets
    atheris.Setup([sys.argv[0], *words], targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:2] == [ONE]:
        fuzz(sys.argv[2], sys.argv[3:])
    sys.exit(main(sys.argv[1:]))
