#!/usr/bin/env python3
"""Write stored groups of each rule kind, as this code stores them: tests/golden/groups/*.json.

They come from the rule tests of the library, and together have every key that occurs in any of their groups; the last
of each kind has a value in every field. Run it before a release whose groups differ, with the release as suffix: later
code has to read the files of every release.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pydantic import AwareDatetime, BaseModel

from bus.envelope import decode
from rules.catalog import KINDS
from rules.core.group import VERSION, Group
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, unpacked
from rules.rehearsal import simulation
from rules.rehearsal.rule_tests import suite_loader, tester
from tests.golden_files import value_paths

STATES = {model.__name__: kind.state for model, kind in KINDS.items()}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SAMPLES: Mapping[Any, Any] = {
    str: "word", int: 7, float: 1.5, bool: True, bytes: b"x", datetime: MOMENT, AwareDatetime: MOMENT,
    timedelta: timedelta(seconds=5),
}  # fmt: skip
LIBRARY = ROOT / "rules" / "library"
FOLDER = ROOT / "tests" / "golden" / "groups"
MESSAGES = ROOT / "tests" / "golden" / "messages"


def main() -> None:
    """Write the files of this release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suffix", default="", help="of the file names, such as the release")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write them")
    given = parser.parse_args()
    suffix, folder = given.suffix, given.folder
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, list[Any]] = {}
    seen: dict[str, set[str]] = {}
    for kind, group in _groups():
        stored = json.loads(unpacked(dump_group(group)))
        if new := set(value_paths(stored)) - seen.setdefault(kind, set()):
            seen[kind] |= new
            kept.setdefault(kind, []).append(stored)
    for kind, state in STATES.items():
        kept.setdefault(kind, []).append(json.loads(unpacked(dump_group(filled(Group[state])))))  # type: ignore[valid-type]
    for kind, groups in kept.items():
        path = folder / f"{kind}{suffix and '-' + suffix}.json"
        if not path.exists():
            path.write_text("".join(json.dumps(group) + "\n" for group in groups), "utf-8")


def _groups() -> Iterator[tuple[str, Group]]:
    """Every group after every step of every rule test of the library."""
    found: list[tuple[str, Group]] = []

    class Watched(simulation.GroupStore):
        def apply(self, *args: Any, **keys: Any) -> Any:
            decisions = super().apply(*args, **keys)
            found.extend(of(self, decisions))
            return decisions

        def fire_due(self, *args: Any, **keys: Any) -> Any:
            decisions = super().fire_due(*args, **keys)
            found.extend(of(self, decisions))
            return decisions

    def of(groups: simulation.GroupStore, decisions: Sequence[Decision]) -> Iterator[tuple[str, Group]]:
        named = (one.group for one in decisions if one.group.rule in groups.rules)  # a pause is of no rule
        return ((type(groups.rules[group.rule]).__name__, group) for group in named)

    simulation.GroupStore = Watched  # type: ignore[misc]
    for path in sorted(LIBRARY.glob("*_test.yaml")):
        suite = suite_loader.load_suite(
            path.read_text("utf-8"), path.name, lambda name: (LIBRARY / name).read_text("utf-8")
        )
        for _ in tester.run(suite):
            yield from found
            found.clear()


def filled(form: Any) -> Any:
    """Give a value of this type in which every field has a value, none of them its default where there is a choice."""
    origin, inner = get_origin(form), get_args(form)
    if form in SAMPLES:
        return SAMPLES[form]
    if is_dataclass(origin or form):
        return _filled_fields(origin or form, inner)
    if origin is Annotated:
        return filled(inner[0])
    if origin is Literal:
        return inner[-1]
    if origin in (Union, types.UnionType):
        return filled(next(one for one in inner if one is not type(None)))
    if origin is tuple:
        return tuple(filled(one) for one in inner if one is not ...)
    if origin in (frozenset, set):
        return origin([filled(inner[0])])
    if origin is not None and issubclass(origin, Mapping):
        return {filled(inner[0]): filled(inner[1])}
    if isinstance(form, type) and issubclass(form, Enum):
        return [*form][-1]
    if isinstance(form, type) and issubclass(form, BaseModel):
        golden = MESSAGES / f"{form.__name__}.json"  # a message of the bus: its fields have limits of their own
        if golden.exists():
            return decode(golden.read_bytes()).data
        return form(**{name: filled(one.annotation) for name, one in form.model_fields.items()})
    raise TypeError(f"{form}: say in SAMPLES what is put for it")


def _filled_fields(form: Any, inner: Sequence[Any]) -> Any:
    hints = get_type_hints(form, include_extras=True)
    if form is Group:
        hints["state"] = inner[0]
    given = {one.name: filled(hints[one.name]) for one in fields(form) if one.init and one.name != "later"}
    return form(**given | ({"version": VERSION} if form is Group else {}))


if __name__ == "__main__":
    main()
