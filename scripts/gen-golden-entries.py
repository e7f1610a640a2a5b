#!/usr/bin/env python3
"""Write an example of each kind of entry of a key-value bucket, as this code stores it: tests/golden/entries/*.jsonl.

Run it before a release whose entries differ, with the release as suffix: later code has to read the files of every
release. Without a suffix it writes those that have no file at all.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.golden_entries import ENTRIES, FORMS, new_bus, text


def main() -> None:
    """Write the files that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suffix", default="", help="of the file names, such as the release")
    parser.add_argument("--folder", type=Path, default=ENTRIES, help="where to write them")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, form in FORMS.items():
        path = given.folder / f"{name}{given.suffix and '-' + given.suffix}.jsonl"
        if not (path.exists() if given.suffix else [*given.folder.glob(f"{name}*.jsonl")]):
            path.write_text(text(asyncio.run(form.write(new_bus()))), "utf-8")


if __name__ == "__main__":
    main()
