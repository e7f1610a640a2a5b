"""Parts of the OpenAPI document: schemas, and what several paths have in common."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
TEXT = {"type": "string"}
TIME = {"type": "string", "format": "date-time"}
OBJECT = {"description": "As for GET", "content": {"application/json": {"schema": {"type": "object"}}}}
ROWS = {"type": "array", "items": {"type": "object"}}


def object_of(required: str, **properties: Json) -> Json:
    """Give the schema of an object. `required`: the names of what it always has, parted by spaces."""
    return {"type": "object", "required": required.split(), "properties": properties}


def list_of(of: str) -> Json:
    """Give the schema of a list of one of SCHEMAS."""
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{of}"}}


def in_path(name: str, description: str) -> Json:
    """Give a parameter in the path."""
    return {"name": name, "in": "path", "required": True, "description": description, "schema": TEXT}


SCHEMAS: Json = {
    "Error": object_of("error", error=TEXT),
    "Group": object_of(
        "key rule object mode state since endsAt secondsLeft failedOver hold pause windows targets actions",
        key=TEXT, rule=TEXT, object=TEXT, mode={"type": ["string", "null"]}, state=TEXT, next=TEXT,
        since={"type": ["string", "null"]}, endsAt={"type": ["string", "null"]},
        secondsLeft={"type": ["number", "null"]}, failedOver={"type": "boolean"},
        weights={"type": ["object", "null"]}, hold={"type": ["object", "null"]}, pause={"type": ["object", "null"]},
        windows=list_of("Window"), targets={"type": "array"}, actions={"type": "array", "items": TEXT},
    ),
    "Window": object_of(
        "target towards since seconds", target=TEXT, towards={"enum": ["Healthy", "Unhealthy"]}, since=TIME,
        seconds={"type": ["number", "null"]}, waitingSince={"type": ["string", "null"]}, detail=TEXT,
    ),
    "Action": object_of(
        "id action rule object at because outcome", id=TEXT, action=TEXT, rule=TEXT, object=TEXT, at=TIME,
        because=TEXT, means=TEXT, detail=TEXT, outcome={"type": ["object", "null"]},
        weights={"type": ["object", "null"]}, step={"type": ["string", "null"]}, undo={"type": "boolean"},
        zone={"type": ["string", "null"]},
    ),
    "Pause": object_of(
        "pattern by reason since until", pattern=TEXT, by=TEXT, reason=TEXT, since=TIME,
        until={"type": ["string", "null"]},
    ),
}  # fmt: skip
