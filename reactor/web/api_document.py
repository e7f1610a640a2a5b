"""The OpenAPI document of `/api/v1`."""

from __future__ import annotations

from typing import Any

from reactor.runtime.installed_versions import installed

Json = dict[str, Any]
_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}


def document() -> Json:
    """Give the document: each path with its parameters and what it answers."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "alert-reactor", "version": installed("alert-reactor"),
            "description": "What the reactor knows, waits for, holds back and did. Reads the bus.",
        },
        "security": [{"bearer": []}, {"session": []}, {}],
        "paths": {path: _with_errors(item) for path, item in _PATHS.items()},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "reactor_session"},
            },
            "schemas": _SCHEMAS,
        },
    }  # fmt: skip


def _object(required: str, **properties: Json) -> Json:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(of: str) -> Json:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{of}"}}


def _get(summary: str, schema: Json, *parameters: Json, media: str = "application/json") -> Json:
    answer = {"description": summary, "content": {media: {"schema": schema}}}
    return {"get": {"summary": summary, "parameters": [*parameters], "responses": {"200": answer}}}


def _query(name: str, description: str, schema: Json | None = None) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema or _TEXT}


def _in_path(name: str, description: str) -> Json:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": _TEXT}


def _with_errors(item: Json) -> Json:
    refused = {
        "description": "Refused",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    return {
        verb: {**operation, "responses": {**operation["responses"], "default": refused}}
        for verb, operation in item.items()
    }


def _body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _post(
    summary: str,
    role: str,
    *parameters: Json,
    needs: tuple[str, ...] | None = None,
    gives: Json | None = None,
    status: str = "202",
    said: str = "The command is stored on the bus.",
    **properties: Json,
) -> Json:
    required = [name for name in properties if name != "forSeconds"] if needs is None else [*needs]
    body = {"type": "object", "required": required, "properties": properties, "additionalProperties": False}
    media = {"application/json": {"schema": gives or _object("id", id=_TEXT, at=_TIME)}}
    return {
        "post": {
            "summary": f"{summary} Needs the role {role}.",
            "description": "With a session also the header X-CSRF-Token, whose value /api/v1/session gives.",
            "parameters": [*parameters],
            "requestBody": _body(body),
            "responses": {status: {"description": said, "content": media}},
        }
    }


_SCHEMAS: Json = {
    "Error": _object("error", error=_TEXT),
    "Group": _object(
        "key rule object mode state since endsAt secondsLeft failedOver hold pause windows targets actions",
        key=_TEXT, rule=_TEXT, object=_TEXT, mode={"type": ["string", "null"]}, state=_TEXT, next=_TEXT,
        since={"type": ["string", "null"]}, endsAt={"type": ["string", "null"]},
        secondsLeft={"type": ["number", "null"]}, failedOver={"type": "boolean"},
        weights={"type": ["object", "null"]}, hold={"type": ["object", "null"]}, pause={"type": ["object", "null"]},
        windows=_list("Window"), targets={"type": "array"}, actions={"type": "array", "items": _TEXT},
    ),
    "Window": _object(
        "target towards since seconds", target=_TEXT, towards={"enum": ["Healthy", "Unhealthy"]}, since=_TIME,
        seconds={"type": ["number", "null"]}, waitingSince={"type": ["string", "null"]}, detail=_TEXT,
    ),
    "Action": _object(
        "id action rule object at because outcome", id=_TEXT, action=_TEXT, rule=_TEXT, object=_TEXT, at=_TIME,
        because=_TEXT, means=_TEXT, detail=_TEXT, outcome={"type": ["object", "null"]},
        weights={"type": ["object", "null"]}, step={"type": ["string", "null"]}, undo={"type": "boolean"},
        zone={"type": ["string", "null"]},
    ),
    "Pause": _object(
        "pattern by reason since until", pattern=_TEXT, by=_TEXT, reason=_TEXT, since=_TIME,
        until={"type": ["string", "null"]},
    ),
}  # fmt: skip
_STATUS = _object(
    "now problem groups pauses actions", now=_TIME, problem=_TEXT, groups=_list("Group"), pauses=_list("Pause"),
    actions=_list("Action"),
)  # fmt: skip
_OBJECT = {"description": "As for GET", "content": {"application/json": {"schema": {"type": "object"}}}}
_ROWS = {"type": "array", "items": {"type": "object"}}
_PATHS: Json = {
    "/api/v1/status": _get("All groups, pauses and the newest actions.", _STATUS),
    "/api/v1/groups": _get(
        "Groups: what each rule knows and waits for.", _object("now groups", now=_TIME, groups=_list("Group")),
        _query("rule", "A pattern of rule names: `shop-*`."), _query("object", "One object."),
    ),
    "/api/v1/rules": _get("The rules of this process's files.", _object("digest rules", digest=_TEXT, rules=_ROWS)),
    "/api/v1/targets": _get("Targets that rules watch.", _object("targets", targets=_ROWS)),
    "/api/v1/targets/{target}": _get(
        "The timeline of one target: a day of observations, its groups, their actions.",
        _object("now target groups observations actions", now=_TIME, target=_TEXT, groups=_list("Group"),
                observations=_ROWS, actions=_list("Action")),
        _in_path("target", "As in rule files: service/east/shop/checkout."),
    ),
    "/api/v1/actions": _get(
        "The newest actions, the newest first.",
        _object("actions leftOut", actions=_list("Action"), leftOut={"type": "integer"}),
        _query("rule", "A pattern of rule names."), _query("object", "One object."),
        _query("type", "One kind of action: SetWeights."), _query("outcome", "Done, Failed, Refused or Pending."),
        _query("since", "Not before this time.", _TIME), _query("until", "Not after this time.", _TIME),
        _query("limit", "At most so many.", {"type": "integer", "minimum": 1, "maximum": 2000, "default": 200}),
    ),
    "/api/v1/actions/{action}": _get(
        "One action, traced back to the observations that caused it.",
        _object("id action observations windows evidence decision guards write outcomes", id=_TEXT,
                action={"type": "object"}),
        _in_path("action", "The ID of the action."),
    ),
    "/api/v1/members": _get(
        "Processes, members and partitions.",
        _object("members processes partitions", members=_ROWS, processes=_ROWS, partitions=_ROWS),
    ),
    "/api/v1/map": _get(
        "Clusters with their targets, and routes with their weights.",
        _object("clusters routes", clusters=_ROWS, routes=_ROWS),
    ),
    "/api/v1/events": _get(
        "Server-sent events: `state`, then `change` with what has changed, and a `beat` each second.", _TEXT,
        media="text/event-stream",
    ),
    "/api/v1/commands/approve": _post(
        "Approves what a rule asks for.", "approve", rule=_TEXT, object=_TEXT, request=_TEXT, comment=_TEXT
    ),
    "/api/v1/commands/reject": _post(
        "Rejects what a rule asks for.", "approve", rule=_TEXT, object=_TEXT, request=_TEXT, comment=_TEXT,
        forSeconds={"type": "number"},
    ),
    "/api/v1/approvals/{token}": {
        **_get(
            "What a link of a notification is about. Looking changes nothing.",
            _object("rule object request until state used plan", rule=_TEXT, object=_TEXT, request=_TEXT, until=_TIME,
                    state={"enum": ["open", "used", "changed"]}, used=_TEXT, plan=_TEXT),
            _in_path("token", "The part of the link behind `/approve/`."),
        ),
        **_post(
            "Approves or rejects what a link is about, once.", "approve", _in_path("token", "As above."),
            answer={"enum": ["approve", "reject"]}, comment=_TEXT, forSeconds={"type": "number"},
        ),
    },
    "/api/v1/session": {
        **_get("Who is signed in, and what that person may do.", {"type": "object"}),
        "post": {
            "summary": "Signs a browser in: the answer sets a cookie. Needs the page's own Origin, or a token.",
            "requestBody": _body(_object("token", token=_TEXT)),
            "responses": {"200": _OBJECT},
        },
        "delete": {"summary": "Signs a browser out.", "responses": {"200": _OBJECT}},
    },
}  # fmt: skip
_PLAN = _object("plan fingerprint", plan=_TEXT, fingerprint=_TEXT)
_FOR, _FORCE, _NAMES = {"type": "number"}, {"type": "boolean"}, {"type": "array", "items": _TEXT}
_OPERATIONS: dict[str, tuple[str, Json]] = {
    "pause": ("Pauses the rules whose names match.", {"forSeconds": _FOR}),
    "resume": ("Ends a pause.", {}),
    "failover-traffic": (
        "Moves traffic away from its primary.", {"object": _TEXT, "to": _NAMES, "forSeconds": _FOR, "force": _FORCE}
    ),
    "failback-traffic": (
        "Brings traffic back to its primary.", {"object": _TEXT, "forSeconds": _FOR, "force": _FORCE}
    ),
    "release-traffic": ("Lets a rule decide about its traffic again.", {"object": _TEXT}),
    "isolate-zone": (
        "Takes a zone out of service.", {"zone": _TEXT, "force": _FORCE, "allowSingleZone": _NAMES}
    ),
    "failback-zone": ("Brings an isolated zone back.", {"force": _FORCE}),
    "abort-zone": ("Undoes an isolation that is being carried out.", {}),
    "retry-zone": ("Tries a step of an isolation again that has failed.", {}),
}  # fmt: skip
for _name, (_summary, _properties) in _OPERATIONS.items():
    _needs = ("rule", "zone") if "zone" in _properties else ("rule",)
    _PATHS[f"/api/v1/commands/{_name}"] = _post(
        _summary, "operate", needs=(*_needs, "comment"), rule=_TEXT, comment=_TEXT, plan=_TEXT, **_properties
    )
    _PATHS[f"/api/v1/plans/{_name}"] = _post(
        f"What the command would come to now: {_summary}", "operate", needs=_needs, gives=_PLAN, status="200",
        said="The plan, and its fingerprint: with `plan` the command counts for this plan only.",
        rule=_TEXT, comment=_TEXT, **_properties,
    )  # fmt: skip
