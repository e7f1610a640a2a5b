"""docs/events.md and docs/asyncapi.yaml say what bus/ says: all of it, and nothing else."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from bus import subjects, topology
from bus.envelope import MESSAGES, decode, encode
from bus.messages import Health, Observation
from bus.testing.memory_parts import matches

ROOT = Path(__file__).parents[2]
HINT = "run: .venv/bin/python scripts/gen-events-docs.py"
NO_SUBJECTS = {
    "is_spoken", "token", "partition_of", "key", "commands_position", "group", "kept_rule", "facts", "observations",
    "observations_of", "of_partitions", "partition_in", "inbox",
    "user_in", "source_in", "publisher_in", "decisions",
}  # fmt: skip
"""Functions of bus.subjects that make no subject of a message: parts, keys, prefixes, and the filters over facts."""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_events_docs", ROOT / "scripts" / "gen-events-docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def events() -> str:
    return (ROOT / "docs" / "events.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def document() -> Any:
    return yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text(encoding="utf-8"))


def test_the_tables_are_those_of_the_models(generator: ModuleType, events: str) -> None:
    assert events == generator.events(events), HINT


def test_the_asyncapi_document_is_that_of_the_models(generator: ModuleType) -> None:
    assert (ROOT / "docs" / "asyncapi.yaml").read_text(encoding="utf-8") == generator.asyncapi(), HINT


def test_every_message_is_documented_with_each_of_its_fields(events: str, document: Any) -> None:
    for message in MESSAGES:
        section = events.partition(f"### {message.__name__}\n")[2].partition("\n### ")[0]
        assert message.type in section, message.__name__
        for name, field in message.model_fields.items():
            assert f"| `{field.alias or name}` |" in section, f"{message.__name__}.{name}"
        assert document["components"]["messages"][message.__name__]["name"] == message.type


def test_every_message_travels_somewhere(generator: ModuleType) -> None:
    assert {message for channel in generator.CHANNELS.values() for message in channel.messages} == set(MESSAGES)


def test_every_subject_is_documented(generator: ModuleType, events: str, document: Any) -> None:
    made = {
        name for name, function in inspect.getmembers(subjects, inspect.isfunction)
        if function.__module__ == subjects.__name__ and not name.startswith("_")
    }  # fmt: skip
    assert {channel.subject.__name__ for channel in generator.CHANNELS.values()} == made - NO_SUBJECTS
    for name, channel in generator.CHANNELS.items():
        assert f"| `{channel.address}` |" in events
        assert document["channels"][name]["address"] == channel.address


def test_every_stream_and_bucket_is_documented_and_every_pattern_is_used(generator: ModuleType, events: str) -> None:
    for kept in (*topology.STREAMS, *topology.BUCKETS):
        assert f"| {kept.name} |" in events
    addresses = [channel.subject(*channel.parts) for channel in generator.CHANNELS.values()]
    for stream in topology.STREAMS:
        for pattern in stream.subjects:
            assert any(matches(pattern, address) for address in addresses), pattern


def test_the_asyncapi_document_is_built_as_version_3_asks(document: Any) -> None:
    assert document["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= document["info"].keys()
    assert all({"host", "protocol"} <= server.keys() for server in document["servers"].values())
    for channel in document["channels"].values():
        assert set(re.findall(r"\{(\w+)\}", channel["address"])) == set(channel["parameters"])
        assert channel["messages"]
    for operation in document["operations"].values():
        assert operation["action"] in ("send", "receive")
        assert operation["messages"]
        # An operation's messages must be those of its channel.
        inside = operation["channel"]["$ref"] + "/messages/"
        assert all(message["$ref"].startswith(inside) for message in operation["messages"])
    for message in document["components"]["messages"].values():
        assert {"title", "contentType", "payload"} <= message.keys()
    for name in ("channels", "operations"):
        assert all(re.fullmatch(r"[A-Za-z0-9_-]+", key) for key in document[name])


def test_every_reference_leads_somewhere(document: Any) -> None:
    references = list(_references(document))
    assert references
    for reference in references:
        there = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in there, reference
            there = there[part]


def test_its_schemas_are_schemas_and_accept_what_the_bus_accepts(document: Any) -> None:
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft7Validator.check_schema(schema)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    seen = Observation(target="service/east/web", status=Health.UNHEALTHY, observed_at=noon)
    body = json.loads(encode(seen, id="1", source="/test", time=noon))
    validator = _validator(document, "ObservationEvent")
    validator.validate(body)
    for wrong in ({"status": "Down"}, {"observedat": "now"}, {"target": "web"}):
        assert not validator.is_valid({**body, "data": {**body["data"], **wrong}})


def test_the_example_that_people_copy_is_understood(document: Any, events: str) -> None:
    [example] = re.findall(r"'(\{.*?\n  \})'", events, re.DOTALL)
    assert isinstance(decode(example.encode()).data, Observation)
    _validator(document, "ObservationEvent").validate(json.loads(example))


def _validator(document: Any, name: str) -> Any:
    return jsonschema.Draft7Validator({"$ref": f"#/components/schemas/{name}", "components": document["components"]})


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)
    elif isinstance(node, list):
        for child in node:
            yield from _references(child)
