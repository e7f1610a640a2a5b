"""What an earlier release stored in a bucket is read by this one, under the key that it had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.errors import Malformed
from tests.golden_entries import ENTRIES, FORMS, new_bus, put, put_back, text
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


async def test_a_field_that_is_renamed_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "process.jsonl"
    file.write_text((ENTRIES / "process-0.1.0.jsonl").read_text("utf-8").replace("problems", "troubles"), "utf-8")
    bus = new_bus()
    await put_back(bus, FORMS["process"].place, file)
    with pytest.raises(Malformed, match="process"):
        await FORMS["process"].read(bus)
