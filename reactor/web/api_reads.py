"""The paths of the OpenAPI document that are read."""

from __future__ import annotations

from reactor.web.api_schemas import ROWS, TEXT, TIME, Json, in_path, list_of, object_of


def get(summary: str, schema: Json, *parameters: Json, media: str = "application/json") -> Json:
    """Give an operation that reads."""
    answer = {"description": summary, "content": {media: {"schema": schema}}}
    return {"get": {"summary": summary, "parameters": [*parameters], "responses": {"200": answer}}}


def query(name: str, description: str, schema: Json | None = None) -> Json:
    """Give a parameter behind the question mark."""
    return {"name": name, "in": "query", "description": description, "schema": schema or TEXT}


_STATUS = object_of(
    "now problem groups pauses actions", now=TIME, problem=TEXT, groups=list_of("Group"), pauses=list_of("Pause"),
    actions=list_of("Action"),
)  # fmt: skip
READS: Json = {
    "/api/v1/status": get("All groups, pauses and the newest actions.", _STATUS),
    "/api/v1/groups": get(
        "Groups: what each rule knows and waits for.", object_of("now groups", now=TIME, groups=list_of("Group")),
        query("rule", "A pattern of rule names: `shop-*`."), query("object", "One object."),
    ),
    "/api/v1/rules": get("The rules of this process's files.", object_of("digest rules", digest=TEXT, rules=ROWS)),
    "/api/v1/targets": get("Targets that rules watch.", object_of("targets", targets=ROWS)),
    "/api/v1/targets/{target}": get(
        "The timeline of one target: a day of observations, its groups, their actions.",
        object_of("now target groups observations actions", now=TIME, target=TEXT, groups=list_of("Group"),
                observations=ROWS, actions=list_of("Action")),
        in_path("target", "As in rule files: service/east/shop/checkout."),
    ),
    "/api/v1/actions": get(
        "The newest actions, the newest first.",
        object_of("actions leftOut", actions=list_of("Action"), leftOut={"type": "integer"}),
        query("rule", "A pattern of rule names."), query("object", "One object."),
        query("type", "One kind of action: SetWeights."), query("outcome", "Done, Failed, Refused or Pending."),
        query("since", "Not before this time.", TIME), query("until", "Not after this time.", TIME),
        query("limit", "At most so many.", {"type": "integer", "minimum": 1, "maximum": 2000, "default": 200}),
    ),
    "/api/v1/actions/{action}": get(
        "One action, traced back to the observations that caused it.",
        object_of("id action observations windows evidence decision guards write outcomes", id=TEXT,
                action={"type": "object"}),
        in_path("action", "The ID of the action."),
    ),
    "/api/v1/members": get(
        "Processes, members and partitions.",
        object_of("members processes partitions", members=ROWS, processes=ROWS, partitions=ROWS),
    ),
    "/api/v1/map": get(
        "Clusters with their targets, and routes with their weights.",
        object_of("clusters routes", clusters=ROWS, routes=ROWS),
    ),
    "/api/v1/events": get(
        "Server-sent events: `state`, then `change` with what has changed, and a `beat` each second.", TEXT,
        media="text/event-stream",
    ),
}  # fmt: skip
