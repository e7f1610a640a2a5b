#!/usr/bin/env python3
"""Write stored groups of each rule kind, as this code stores them: tests/golden/groups/*.json.

They come from the rule tests of the library, and together have every key that occurs in any of their groups. Run it
before a release whose groups differ, with the release as suffix: later code has to read the files of every release.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rules.core.group import Group  # noqa: E402
from rules.engine.group_codec import dump, unpacked  # noqa: E402
from rules.rehearsal import simulation  # noqa: E402
from rules.rehearsal.testing import suite_loader, tester  # noqa: E402

LIBRARY = ROOT / "rules" / "library"
FOLDER = ROOT / "tests" / "golden" / "groups"


def main() -> None:
    """Write the files of this release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suffix", default="", help="of the file names, such as the release")
    suffix = parser.parse_args().suffix
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept: dict[str, list[Any]] = {}
    seen: dict[str, set[str]] = {}
    for kind, group in _groups():
        stored = json.loads(unpacked(dump(group)))
        if new := set(_paths(stored)) - seen.setdefault(kind, set()):
            seen[kind] |= new
            kept.setdefault(kind, []).append(stored)
    for kind, groups in kept.items():
        path = FOLDER / f"{kind}{suffix and '-' + suffix}.json"
        if not path.exists():
            path.write_text("".join(json.dumps(group) + "\n" for group in groups), "utf-8")


def _groups() -> Iterator[tuple[str, Group]]:
    """Every group after every step of every rule test of the library."""
    found: list[tuple[str, Group]] = []

    class Watched(simulation.GroupStore):
        def take(self, *args: Any, **keys: Any) -> Any:
            decisions = super().take(*args, **keys)
            found.extend((type(self.rules[one.group.rule]).__name__, one.group) for one in decisions)
            return decisions

        def ring(self, *args: Any, **keys: Any) -> Any:
            decisions = super().ring(*args, **keys)
            found.extend((type(self.rules[one.group.rule]).__name__, one.group) for one in decisions)
            return decisions

    simulation.GroupStore = Watched  # type: ignore[misc]
    for path in sorted(LIBRARY.glob("*_test.yaml")):
        suite = suite_loader.load(path.read_text("utf-8"), path.name, lambda name: (LIBRARY / name).read_text("utf-8"))
        for _ in tester.run(suite):
            yield from found
            found.clear()


def _paths(value: Any, at: str = "") -> Iterator[str]:
    """Give where there is a value: keys of mappings by name (members, clusters) count as one."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _paths(one, f"{at}.{key if key.isidentifier() else '*'}")
    elif isinstance(value, list):
        for one in value:
            yield from _paths(one, f"{at}[]")
    elif value not in (None, "", 0, False):
        yield at


if __name__ == "__main__":
    main()
