"""Stored groups outlive a release: what an earlier one stored is read, and what a later one stored is not lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bus.errors import Malformed
from rules.catalog import KINDS
from rules.engine.group_codec import dump_group, load_group, unpacked
from tests.golden_files import value_paths

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "groups"
STORED = [line.encode() for path in sorted(GOLDEN.glob("*.json")) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("body", STORED, ids=range(len(STORED)))
def test_what_was_stored_is_read_and_nothing_of_it_is_unknown(body: bytes) -> None:
    group = load_group(body)
    assert group.later is None, "a field was renamed or taken away: stored groups of an earlier release have it"
    assert has_all(json.loads(unpacked(dump_group(group))), json.loads(body))


SINCE_0_1_0 = {
    "wanted_until",
    "restart",
    "also_paused",
    "pattern",
    "resumed",
    "returned_at",
    "stretches",
    "wanted_sizes",
    "marks",
    "found",
    "has_ended",
    "too_many_since",
    "unconfirmed",
    "decided_at",
    "seen_by_rule",
    "failed_at",
}
"""Fields that no release has stored yet: they are in the golden groups of the next one."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The groups that scripts/gen-golden-groups.py writes with this code."""
    folder = tmp_path_factory.mktemp("groups")
    subprocess.run([sys.executable, ROOT / "scripts" / "gen-golden-groups.py", "--folder", folder], check=True)
    return folder


def test_the_groups_of_the_next_release_can_be_written(written: Path) -> None:
    assert {path.stem for path in written.glob("*.json")} == {model.__name__ for model in KINDS}
    for path in written.glob("*.json"):
        for line in path.read_text("utf-8").splitlines():
            assert load_group(line.encode()).later is None


def test_every_field_that_is_stored_has_a_value_in_a_golden_group(written: Path) -> None:
    """One that is renamed would else be forgotten by an upgrade, and no test would say so."""
    ours = {
        name
        for path in written.glob("*.json")
        for name in value_paths(json.loads(path.read_text("utf-8").splitlines()[-1]))
    }
    golden = {name for body in STORED for name in value_paths(json.loads(body))}
    assert {name for name in ours - golden if not SINCE_0_1_0 & {*re.findall(r"\w+", name)}} == set()


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every object in a stored group."""
    if isinstance(value, dict):
        yield at
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in entries:
        yield from places(below, (*at, key))


def has_all(found: Any, wanted: Any) -> bool:
    """True if all keys of `wanted` are there with their values; a missing key has its default."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and has_all(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(has_all, found, wanted))
    return bool(found == wanted)


def with_key(body: bytes, place: tuple[str | int, ...]) -> dict[str, Any]:
    """Give the stored group with a key of a later release at this place."""
    stored: dict[str, Any] = json.loads(body)
    inner: Any = stored
    for part in place:
        inner = inner[part]
    inner["ofALaterRelease"] = {"any": ["thing", None]}
    return stored


@pytest.mark.parametrize("body", STORED, ids=range(len(STORED)))
def test_keys_of_a_later_release_are_written_back_or_refused(body: bytes) -> None:
    kept = 0
    for place in places(json.loads(body)):
        stored = with_key(body, place)
        try:
            group = load_group(json.dumps(stored).encode())
        except Malformed:  # in a message of the bus, and where keys are names and not fields
            continue
        kept += 1
        later = replace(group, position=group.position + 1)
        assert has_all(json.loads(unpacked(dump_group(later))), {**stored, "position": later.position})
        assert load_group(dump_group(later)) == later
    assert kept >= 1 + len(json.loads(body)["members"]), "at the top and in each member"


def test_what_belongs_to_a_member_goes_with_it() -> None:
    stored = json.loads(next(one for one in STORED if b'"signals"' in one))
    stored["members"]["custom/a"] = {**next(iter(stored["members"].values())), "ofALaterRelease": 1}
    group = load_group(json.dumps(stored).encode())
    left = {name: member for name, member in group.members.items() if name != "custom/a"}
    assert b"ofALaterRelease" not in unpacked(dump_group(replace(group, members=left)))


def test_a_key_within_an_action_is_refused() -> None:
    body = next(one for one in STORED if b'"action": "' in one)
    with pytest.raises(Malformed):
        load_group(body.replace(b'"action": "', b'"ofALaterRelease": 1, "action": "'))
