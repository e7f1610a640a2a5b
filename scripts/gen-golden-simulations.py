#!/usr/bin/env python3
"""Write what `reactor simulate` prints for the histories of the library's rule tests: tests/golden/simulations/*.jsonl.

tests/house/test_golden_files.py compares them byte for byte. Run this only after a change of behaviour that is meant,
look at what differs, and say it in CHANGELOG.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.golden_files import GOLDEN, simulated, simulations


def main() -> None:
    """Write the files."""
    folder = GOLDEN / "simulations"
    folder.mkdir(parents=True, exist_ok=True)
    for name in simulations():
        (folder / f"{name}.jsonl").write_text(simulated(name), "utf-8")


if __name__ == "__main__":
    main()
