"""The paths of the OpenAPI document by which something changes: commands, their plans, links and sessions."""

from __future__ import annotations

from reactor.web.api_reads import get
from reactor.web.api_schemas import OBJECT, TEXT, TIME, Json, in_path, object_of


def body(schema: Json) -> Json:
    """Give the body of a request."""
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def post(
    summary: str,
    role: str,
    *parameters: Json,
    needs: tuple[str, ...] | None = None,
    gives: Json | None = None,
    status: str = "202",
    said: str = "The command is stored on the bus.",
    **properties: Json,
) -> Json:
    """Give an operation that stores a command. `needs`: what the body must have; None: all but `forSeconds`."""
    required = [name for name in properties if name != "forSeconds"] if needs is None else [*needs]
    schema = {"type": "object", "required": required, "properties": properties, "additionalProperties": False}
    media = {"application/json": {"schema": gives or object_of("id", id=TEXT, at=TIME)}}
    return {
        "post": {
            "summary": f"{summary} Needs the role {role}.",
            "description": "With a session also the header X-CSRF-Token, whose value /api/v1/session gives.",
            "parameters": [*parameters],
            "requestBody": body(schema),
            "responses": {status: {"description": said, "content": media}},
        }
    }


WRITES: Json = {
    "/api/v1/commands/approve": post(
        "Approves what a rule asks for.", "approve", rule=TEXT, object=TEXT, request=TEXT, comment=TEXT
    ),
    "/api/v1/commands/reject": post(
        "Rejects what a rule asks for.", "approve", rule=TEXT, object=TEXT, request=TEXT, comment=TEXT,
        forSeconds={"type": "number"},
    ),
    "/api/v1/approvals/{token}": {
        **get(
            "What a link of a notification is about. Looking changes nothing.",
            object_of("rule object request until state used plan", rule=TEXT, object=TEXT, request=TEXT, until=TIME,
                    state={"enum": ["open", "used", "changed"]}, used=TEXT, plan=TEXT),
            in_path("token", "The part of the link behind `/approve/`."),
        ),
        **post(
            "Approves or rejects what a link is about, once.", "approve", in_path("token", "As above."),
            answer={"enum": ["approve", "reject"]}, comment=TEXT, forSeconds={"type": "number"},
        ),
    },
    "/api/v1/session": {
        **get("Who is signed in, and what that person may do.", {"type": "object"}),
        "post": {
            "summary": "Signs a browser in: the answer sets a cookie. Needs the page's own Origin, or a token.",
            "requestBody": body(object_of("token", token=TEXT)),
            "responses": {"200": OBJECT},
        },
        "delete": {"summary": "Signs a browser out.", "responses": {"200": OBJECT}},
    },
}  # fmt: skip
_PLAN = object_of("plan fingerprint refused", plan=TEXT, fingerprint=TEXT,
                  refused={"type": "array", "items": TEXT})  # fmt: skip
_FOR, _FORCE, _NAMES = {"type": "number"}, {"type": "boolean"}, {"type": "array", "items": TEXT}
_OPERATIONS: dict[str, tuple[str, Json]] = {
    "pause": ("Pauses the rules whose names match.", {"forSeconds": _FOR}),
    "resume": ("Ends a pause.", {}),
    "failover-traffic": (
        "Moves traffic away from its primary.", {"object": TEXT, "to": _NAMES, "forSeconds": _FOR, "force": _FORCE}
    ),
    "failback-traffic": (
        "Brings traffic back to its primary.", {"object": TEXT, "forSeconds": _FOR, "force": _FORCE}
    ),
    "release-traffic": ("Lets a rule decide about its traffic again.", {"object": TEXT}),
    "isolate-zone": (
        "Takes a zone out of service.", {"zone": TEXT, "force": _FORCE, "allowSingleZone": _NAMES}
    ),
    "failback-zone": ("Brings an isolated zone back.", {"force": _FORCE}),
    "abort-zone": ("Undoes an isolation that is being carried out.", {}),
    "retry-zone": ("Tries a step of an isolation again that has failed.", {}),
}  # fmt: skip
for _name, (_summary, _properties) in _OPERATIONS.items():
    _needs = ("rule", "zone") if "zone" in _properties else ("rule",)
    WRITES[f"/api/v1/commands/{_name}"] = post(
        _summary, "operate", needs=(*_needs, "comment"), rule=TEXT, comment=TEXT, plan=TEXT, **_properties
    )
    WRITES[f"/api/v1/plans/{_name}"] = post(
        f"What the command would come to now: {_summary}", "operate", needs=_needs, gives=_PLAN, status="200",
        said="The plan, and its fingerprint: with `plan` the command counts for this plan only.",
        rule=TEXT, comment=TEXT, **_properties,
    )  # fmt: skip
