"""Messages that an earlier release wrote onto the bus are read by this one without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from bus.envelope import decode, encode
from bus.errors import Malformed
from bus.messages import Message
from tests.golden_files import GOLDEN, bare_messages

BARE = {kind.__name__: kind for kind in bare_messages()}
"""Messages without an envelope."""
FILES = sorted((GOLDEN / "messages").glob("*.json"))
ENVELOPED = [path for path in FILES if path.stem.partition("-")[0] not in BARE]


def _defaults(kind: type[Message]) -> dict[str, Any]:
    fields = kind.model_fields.values()
    return {
        str(one.alias): to_jsonable_python(one.get_default(call_default_factory=True))
        for one in fields
        if not one.is_required()
    }


@pytest.mark.parametrize("path", ENVELOPED, ids=lambda path: path.stem)
def test_what_was_written_is_read_and_nothing_of_it_is_lost(path: Path) -> None:
    wrote = json.loads(path.read_text("utf-8"))
    event = decode(json.dumps(wrote).encode())
    assert isinstance(event.data, Message)
    again = json.loads(encode(event.data, id=event.id, source=event.source, time=event.time))
    said = {**_defaults(type(event.data)), **again["data"]}  # what is as usual may be left out
    assert {key: said[key] for key in wrote["data"]} == wrote["data"]  # later fields may have joined
    assert again["type"] == wrote["type"]


@pytest.mark.parametrize("path", ENVELOPED, ids=lambda path: path.stem)
def test_a_key_of_a_later_release_is_refused_and_never_dropped(path: Path) -> None:
    wrote = json.loads(path.read_text("utf-8"))
    wrote["data"]["ofALaterRelease"] = 1
    with pytest.raises(Malformed, match="ofALaterRelease"):
        decode(json.dumps(wrote).encode())


@pytest.mark.parametrize("path", [path for path in FILES if path not in ENVELOPED], ids=lambda path: path.stem)
def test_what_travels_without_an_envelope_is_read_and_nothing_of_it_is_lost(path: Path) -> None:
    kind, wrote = BARE[path.stem.partition("-")[0]], json.loads(path.read_text("utf-8"))
    assert json.loads(kind.model_validate(wrote).model_dump_json()).items() >= wrote.items()
    with pytest.raises(ValidationError, match="ofALaterRelease"):
        kind.model_validate({**wrote, "ofALaterRelease": 1})
