"""Entries that an earlier release stored in a bucket are read by this one, under the key that they had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.errors import Malformed
from tests.golden_entries import ENTRIES, FORMS, new_bus, put, put_back, stored, text
from tests.golden_files import value_paths

FILES = sorted(ENTRIES.glob("*.jsonl"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_what_was_stored_is_read_and_nothing_of_it_is_lost(file: Path) -> None:
    form, bus = FORMS[file.stem.partition("-")[0]], new_bus()
    await put_back(bus, form.place, file)
    assert await form.read(bus) == form.expected


@pytest.mark.parametrize("name", FORMS)
async def test_what_is_stored_now_is_read(name: str) -> None:
    form, bus, next_bus = FORMS[name], new_bus(), new_bus()
    for entry in await form.write(bus):
        await put(next_bus, form.place, entry.key, entry.value)
    assert await form.read(next_bus) == form.expected


def shape(lines: str) -> Iterator[str]:
    """The keys of entries, and the fields of those that are JSON."""
    for line in lines.splitlines():
        entry = json.loads(line)
        if entry["key"].startswith(("used.", "sent")):  # what a link was used for is plain text
            continue
        yield entry["key"]
        if entry.get("text", "").startswith("{"):
            yield from value_paths(json.loads(entry["text"]), entry["key"])


@pytest.mark.parametrize("name", FORMS)
async def test_every_field_that_is_stored_has_a_value_in_a_golden_file(name: str) -> None:
    """One that is renamed would else be forgotten by an upgrade, and no test would say so."""
    golden = {one for file in FILES if file.stem.partition("-")[0] == name for one in shape(file.read_text("utf-8"))}
    ours = {*shape(text(await FORMS[name].write(new_bus())))}
    assert ours <= golden, "a release will store more: run scripts/gen-golden-entries.py --suffix RELEASE"


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(below)


def with_later_keys(value: bytes, *, deep: bool) -> bytes:
    """The entry with a key of a later release, `deep`: in each of its objects. As it was where it is no object."""
    try:
        said = json.loads(value)
    except ValueError:  # a key of random bytes, which may begin as an object does
        return value
    if not isinstance(said, dict):
        return value
    for one in [*objects(said)] if deep else [said]:
        one["since_2_0"] = LATER_VALUE
    return json.dumps(said).encode()


LATER_VALUE = {"later": ["x", {"y": 1}]}
PLAIN_MAPS = {"alert": 1}
"""Objects of an entry whose keys are no fields, such as the labels of an alert: they take text alone."""


@pytest.mark.parametrize("name", FORMS)
async def test_keys_of_a_later_release_are_written_back_or_refused(name: str) -> None:
    form, bus = FORMS[name], new_bus()
    there = []
    for entry in await form.write(new_bus()):
        value = with_later_keys(entry.value, deep=name not in PLAIN_MAPS)
        await put(bus, form.place, entry.key, value)
        if value != entry.value:
            there.append(entry.key)
    before = {entry.key: entry.value for entry in await stored(bus, form.place)}
    read = await form.read(bus)
    assert (read != form.expected) == (form.knows_all or name == "alert")
    if form.write_again is not None:
        await form.write_again(bus)
    after = {entry.key: entry.value for entry in await stored(bus, form.place)}
    for key in there:
        assert (after[key] == before[key]) == (form.write_again is None)
        now, was = ([*objects(json.loads(values[key]))] for values in (after, before))
        assert len([one for one in now if one.get("since_2_0") == LATER_VALUE]) == sum(
            "since_2_0" in one for one in was
        )


async def test_a_field_that_is_renamed_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "process.jsonl"
    file.write_text((ENTRIES / "process-0.1.0.jsonl").read_text("utf-8").replace("problems", "troubles"), "utf-8")
    bus = new_bus()
    await put_back(bus, FORMS["process"].place, file)
    with pytest.raises(Malformed, match="process"):
        await FORMS["process"].read(bus)
