"""The JSON Schemas: what an editor knows of a file, from a schema alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rules
from rules import loader
from rules.rehearsal.rule_tests import tester
from rules.rulefile.yaml import read_yaml

LIBRARY = Path(rules.__file__).parent / "library"
RULES = sorted(file for file in LIBRARY.glob("*.yaml") if not file.stem.endswith("_test"))
TESTS = sorted(LIBRARY.glob("*_test.yaml"))
SCHEMAS: tuple[Callable[[], dict[str, Any]], ...] = (loader.schema, tester.schema)


def name(path: Path) -> str:
    return path.name


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object with properties, wherever it is."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


@pytest.mark.parametrize("path", RULES, ids=name)
def test_every_library_file_is_as_the_schema_says(path: Path) -> None:
    jsonschema.Draft202012Validator(loader.schema()).validate(read_yaml(path.read_text(), path.name)[0].value)


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_every_library_test_is_as_the_schema_says(path: Path) -> None:
    jsonschema.Draft202012Validator(tester.schema()).validate(read_yaml(path.read_text(), path.name)[0].value)


@pytest.mark.parametrize("schema", SCHEMAS, ids=["rules", "test"])
def test_a_schema_is_one_and_all_that_it_refers_to_is_there(schema: Callable[[], dict[str, Any]]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    text = repr(schema())
    for key in schema()["$defs"]:
        assert f"#/$defs/{key}'" in text, "nothing refers to it"


@pytest.mark.parametrize("schema", SCHEMAS, ids=["rules", "test"])
def test_every_object_says_what_it_is_and_takes_no_other_keys(schema: Callable[[], dict[str, Any]]) -> None:
    for one in objects(schema()):
        if one.get("title", "").startswith("alert-reactor"):
            continue
        assert one.get("description"), one.get("title")
        assert one["additionalProperties"] is False, one.get("title")


def test_what_the_models_say_of_a_key_is_shown_by_editors() -> None:
    keys = [key for one in objects(loader.schema()["$defs"]) for key in one["properties"].values()]
    told = [key for key in keys if "description" in key]
    assert len(told) > 0.75 * len(keys), "the others say what they are by their names"


def test_keys_have_their_meaning_and_their_default() -> None:
    failover = loader.schema()["$defs"]["TrafficFailover"]["properties"]
    assert failover["tolerationSeconds"]["description"].startswith(
        "The time for which a target must be bad without a break"
    )
    assert failover["tolerationSeconds"]["default"] == 0
    assert failover["mode"]["default"] == "DryRun"
    assert "Enforce acts" in failover["mode"]["description"]
    probe = loader.schema()["$defs"]["HttpProbe"]["properties"]
    assert (probe["everySeconds"]["default"], probe["failureThreshold"]["default"]) == (10, 3)
    assert probe["staleSeconds"]["description"].startswith("A target without an observation for this long")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sources: [{name: a, kind: HttpProbe, target: cluster/a, url: 'http://a', everySecond: 5}]", ["sources", 0]),
        ("rules: [{name: a, kind: Notification, match: a/*, recoverySeconds: -1}]", ["rules", 0]),
        ("rules: [{name: a, kind: Notifications, match: a/*}]", ["rules", 0]),
        ("rule: []", []),
    ],
)
def test_a_mistake_is_found_at_its_place(text: str, path: list[str | int]) -> None:
    value = read_yaml(f"apiVersion: reactor/v1\n{text}", "f")[0].value
    found = [list(error.absolute_path) for error in jsonschema.Draft202012Validator(loader.schema()).iter_errors(value)]
    assert any(path == one[: len(path)] for one in found)
