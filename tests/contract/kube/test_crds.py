"""Custom kinds: registered, discovered, and held to their schema."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.contract.kube.objects import Widgets
from tests.kube.api import PATIENCE, Api


async def test_a_definition_is_accepted_and_discovered(kube: Api, widgets: Widgets) -> None:
    seen = (await kube.get(widgets.definition)).body
    conditions = {one["type"]: one["status"] for one in seen["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert seen["status"]["storedVersions"] == ["v1"]
    resources = (await kube.get(f"/apis/{widgets.group}/v1")).body["resources"]
    assert {one["name"] for one in resources} == {"widgets", "widgets/status"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.size"),
        ({"size": "big"}, "spec.size"),
        ({"size": 1.5}, "spec.size"),
        ({"size": 11}, "spec.size"),
        ({"size": -1}, "spec.size"),
        ({"size": 1, "color": "blue"}, "spec.color"),
        ({"size": 1, "code": "ABC"}, "spec.code"),
        ({"size": 1, "code": "abcdef"}, "spec.code"),
        ({"size": 1, "weight": True}, "spec.weight"),
        ({"size": 1, "parts": [{"count": 1}]}, "spec.parts[0].name"),
        ({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}, "spec.parts[1]"),
        ({"size": 1, "parts": [{"name": str(number)} for number in range(4)]}, "spec.parts"),
        ({"size": 1, "settings": {"a": 1}}, "spec.settings.a"),
    ],
)
async def test_an_object_against_its_schema_is_invalid(kube: Api, widgets: Widgets, spec: Any, field: str) -> None:
    refused = await kube.post(widgets.path(), widgets.widget("a", **spec))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in refused.body["details"]["causes"]], refused.body


async def test_a_patch_is_held_to_the_schema_too(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a", size=1))
    assert (await kube.patch(widgets.path("a"), {"spec": {"size": 99}})).code == 422
    assert (await kube.get(widgets.path("a"))).body["spec"]["size"] == 1


async def test_defaults_are_filled_in_and_unknown_fields_dropped(kube: Api, widgets: Widgets) -> None:
    spec = {
        "size": 1,
        "weight": "50%",
        "note": None,
        "parts": [{"name": "a", "shade": "dark"}],
        "settings": {"any": "thing"},
        "free": {"a": {"b": [1]}},
        "unknown": True,
    }
    made = await kube.post(widgets.path(), widgets.widget("a", **spec))
    assert made.code == 201, made.body
    assert made.body["spec"] == {
        "size": 1,
        "color": "red",
        "weight": "50%",
        "note": None,
        "parts": [{"name": "a", "count": 1}],
        "settings": {"any": "thing"},
        "free": {"a": {"b": [1]}},
    }


async def test_strict_validation_refuses_unknown_fields(kube: Api, widgets: Widgets) -> None:
    body = widgets.widget("a", size=1, unknown=True)
    refused = await kube.post(widgets.path(), body, fieldValidation="Strict")
    assert refused.code == 400
    assert 'unknown field "spec.unknown"' in refused.body["message"]
    warned = await kube.post(widgets.path(), body, fieldValidation="Warn")
    assert warned.code == 201
    assert "unknown field" in warned.headers["Warning"]


async def test_a_null_is_the_same_as_nothing_where_the_schema_does_not_allow_it(kube: Api, widgets: Widgets) -> None:
    nulls = {"code": None, "color": None, "parts": None, "settings": {"a": None}, "backends": [{"service": None}]}
    made = await kube.post(widgets.path(), widgets.widget("a", size=1, note=None, **nulls))
    assert made.code == 201, made.body
    assert made.body["spec"] == {"size": 1, "color": "red", "note": None, "settings": {}, "backends": [{}]}
    needed = await kube.post(widgets.path(), widgets.widget("b", size=None))
    assert (needed.code, needed.body["details"]["causes"][0]["message"]) == (422, "Required value")


async def test_a_refusal_names_each_field_and_why(kube: Api, widgets: Widgets) -> None:
    refused = await kube.post(widgets.path(), widgets.widget("a", size="x", code="abcdefg", color="blue"))
    causes = {cause["field"]: (cause["reason"], cause["message"]) for cause in refused.body["details"]["causes"]}
    assert causes["spec.size"][0] == "FieldValueTypeInvalid"
    assert causes["spec.color"] == (
        "FieldValueNotSupported", 'Unsupported value: "blue": supported values: "red", "green"'
    )  # fmt: skip
    assert causes["spec.code"] == ("FieldValueTooLong", "Too long: may not be more than 5 bytes")


async def test_two_items_of_one_name_are_refused(kube: Api, widgets: Widgets) -> None:
    refused = await kube.post(widgets.path(), widgets.widget("a", size=1, parts=[{"name": "x"}, {"name": "x"}]))
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldValueDuplicate", "message": 'Duplicate value: {"name":"x"}', "field": "spec.parts[1]"}
    ]


async def test_a_whole_number_is_an_integer_however_it_is_written(kube: Api, widgets: Widgets) -> None:
    made = await kube.post(widgets.path(), widgets.widget("a", size=1.0))
    assert (made.code, json.dumps(made.body["spec"]["size"])) == (201, "1")


async def test_generation_of_a_custom_resource_ignores_metadata_and_status(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a", size=1))
    await kube.patch(widgets.path("a"), {"metadata": {"annotations": {"a": "b"}}})
    await kube.patch(widgets.path("a", subresource="status"), {"status": {"phase": "Ready"}})
    assert (await kube.get(widgets.path("a"))).body["metadata"]["generation"] == 1
    assert (await kube.patch(widgets.path("a"), {"spec": {"size": 2}})).body["metadata"]["generation"] == 2


async def test_a_kind_without_its_definition_is_not_served(kube: Api, widgets: Widgets) -> None:
    await kube.post(widgets.path(), widgets.widget("a", size=1))
    await widgets.remove()
    async with asyncio.timeout(PATIENCE):
        while (await kube.get(widgets.path())).code != 404:
            await asyncio.sleep(0.05)  # a real server takes the objects away first, and says nothing when it is done
