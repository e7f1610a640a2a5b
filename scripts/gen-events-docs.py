#!/usr/bin/env python3
"""Write docs/asyncapi.yaml and the tables of docs/events.md from what bus/ says of messages, subjects and streams.

Run it with .venv/bin/python scripts/gen-events-docs.py after a change there; tests/house/test_events_docs.py fails when
they differ.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pydantic.json_schema import models_json_schema

from bus import subjects, topology
from bus.envelope import MESSAGES, Event
from bus.messages import (
    Action,
    AnyCommand,
    DecisionRecord,
    Excess,
    Fact,
    Hold,
    Inventory,
    Message,
    MessagePart,
    Observation,
    WebhookPost,
)
from bus.testing.memory_parts import matches

EVENTS = ROOT / "docs" / "events.md"
ASYNCAPI = ROOT / "docs" / "asyncapi.yaml"
SCHEMAS = "#/components/schemas/{model}"


@dataclass(frozen=True)
class Channel:
    """One kind of subject. `parts` are the placeholders of its function's arguments, in order."""

    subject: Callable[..., str]
    parts: tuple[str, ...]
    messages: tuple[type[Message], ...]
    summary: str
    plain: str = ""
    """Content where it is no CloudEvent."""
    sends: bool = False
    """True if the reactor sends this to others (or to itself), rather than being told."""

    @property
    def address(self) -> str:
        """The subject with its placeholders in braces."""
        made = self.subject(*self.parts)
        for part in self.parts:
            made = made.replace(part, f"{{{part.lower()}}}")
        return made

    @property
    def stream(self) -> str:
        """The stream that keeps it; empty where none does."""
        address = self.subject(*self.parts)
        return next((s.name for s in topology.STREAMS if any(matches(p, address) for p in s.subjects)), "")


CHANNELS = {
    "observation": Channel(
        subjects.observation, ("SOURCE", "TARGET"), (Observation,),
        "What a source outside saw: this is where you publish. It carries the signal that is named like the source.",
    ),
    "inventory": Channel(
        subjects.inventory, ("SOURCE", "ABOUT"), get_args(Inventory),
        "What exists, by a source outside: a right of its own, because a rule may act on it.",
    ),
    "webhook": Channel(
        subjects.webhook, ("SOURCE",), (WebhookPost,),
        "What Alertmanager posted, written down before it is answered. The receiver's own notebook.",
    ),
    "parked": Channel(
        subjects.parked, ("SOURCE",), (WebhookPost,),
        "A post whose source the router's rules do not name yet, and the rest of a large post: it waits here, and "
        "delays nothing.",
        sends=True,
    ),
    "excess": Channel(
        subjects.excess, ("SOURCE",), (Excess,),
        "What a publisher said beyond `bus.observationsAtOnce`: it waits here, and delays nothing.",
        sends=True,
    ),
    "command": Channel(
        subjects.command, ("KIND", "USER"), get_args(AnyCommand),
        "What people want: to pause and resume rules, to approve and reject, to isolate a zone and to bring it back.",
    ),
    "fact": Channel(
        subjects.fact, ("PARTITION", "KIND", "ABOUT"), tuple(one for one in get_args(Fact) if one is not Observation),
        "What is known, once for each partition that it concerns. Written by routers, watchers and executors only.",
        sends=True,
    ),
    "observed": Channel(
        subjects.observed, ("PARTITION", "TARGET", "OPINION"), (Observation,),
        "The same of observations; the newest message of each subject is what was said last.",
        sends=True,
    ),
    "action": Channel(
        subjects.action, ("PARTITION", "KIND", "ABOUT"), get_args(Action),
        "What is to be done, until it is done. Fenced: the server refuses one who no longer owns the partition.",
        sends=True,
    ),
    "own": Channel(
        subjects.owner, ("PARTITION",), (),
        "Who decides for a partition. The sequence of this message is the epoch that fences the actions.",
        plain="the owner's name as plain text", sends=True,
    ),
    "alive": Channel(
        subjects.alive, ("MEMBER",), (),
        "A request that a running reactor answers; no stream keeps it.",
        plain="nothing; the answer is empty, and that of a receiver says since when it takes posts", sends=True,
    ),
    "refresh": Channel(
        subjects.refresh, ("SOURCE",), (),
        "A decider needs fresh evidence of these targets; the answer is an Observation of each. No stream keeps it.",
        plain="a RefreshRequest as JSON: `targets`, `notBefore`", sends=True,
    ),
    "wanted": Channel(
        subjects.wanted, ("PARTITION",), (),
        "An executor asks the decider whether an action is still wanted before it writes. No stream keeps it.",
        plain="a WantedRequest as JSON: `action`, `rule`, `object`; the answer: `wanted`, `detail`, `at`",
        sends=True,
    ),
    "decision": Channel(
        subjects.decision, ("PARTITION", "RULE"), (DecisionRecord, Hold),
        "The audit: what was decided or held back, and why.",
        sends=True,
    ),
}  # fmt: skip

PARAMETERS = {
    "source": "Who saw it: the name of a source.",
    "target": "What was seen, such as `service/east/shop/web`, as a token.",
    "kind": "The kind of message, as a token.",
    "about": "What it is about, as a token.",
    "opinion": "The signal and the status, such as `health-Unhealthy`, as a token.",
    "partition": f"0 to {topology.PARTITIONS - 1}, from rule and scope.",
    "user": "The user of the bus who publishes it; its permissions are for its own name only.",
    "member": "The name of a running reactor, as a token.",
    "rule": "The name of a rule, as a token.",
}

INFO = (
    "Every message is a CloudEvent 1.0 in structured mode: envelope and data are one JSON document in the body. "
    "`Nats-Msg-Id` makes repeats harmless: what is published again with the same id within five minutes is stored "
    "once. `traceparent` (W3C) may be a header. How subjects are made, and what is guaranteed: docs/events.md."
)


def asyncapi() -> str:
    """Give the whole of docs/asyncapi.yaml."""
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "alert-reactor", "version": "1", "description": INFO,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/cloudevents+json",
        "servers": {"nats": {"host": "127.0.0.1:4222", "protocol": "nats", "description": "NATS 2.12 with JetStream."}},
        "channels": {name: _channel(channel) for name, channel in CHANNELS.items()},
        "operations": {_operation_name(name, channel): _operation(name, channel) for name, channel in CHANNELS.items()},
        "components": {"messages": _messages(), "schemas": _schemas()},
    }  # fmt: skip
    head = "# Written by scripts/gen-events-docs.py from the models in bus/messages/: change those.\n"
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def events(text: str) -> str:
    """Give docs/events.md with its generated parts as they have to be."""
    parts = {"subjects": _subject_table(), "streams": _stream_table(), "messages": _message_tables()}
    for name, table in parts.items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text


def field_docs(model: type[Message]) -> dict[str, str]:
    """Give what is written under each field in the source: the docs are where the fields are."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, MessagePart) or base in (MessagePart, Message):
            continue
        [body] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for field, doc in pairwise(statements):
            match field, doc:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


def _channel(channel: Channel) -> dict[str, Any]:
    names = [message.__name__ for message in channel.messages] or [_plain_name(channel)]
    kept = f" Kept in the stream {channel.stream}." if channel.stream else ""
    return {
        "address": channel.address,
        "description": channel.summary + kept,
        "parameters": {part.lower(): {"description": PARAMETERS[part.lower()]} for part in channel.parts},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
    }


def _operation_name(name: str, channel: Channel) -> str:
    return f"{'send' if channel.sends else 'receive'}{name.capitalize()}"


def _operation(name: str, channel: Channel) -> dict[str, Any]:
    return {
        "action": "send" if channel.sends else "receive",
        "channel": {"$ref": f"#/channels/{name}"},
        "summary": channel.summary,
        "messages": [{"$ref": f"#/channels/{name}/messages/{message}"} for message in _channel(channel)["messages"]],
    }


def _plain_name(channel: Channel) -> str:
    return channel.subject.__name__.capitalize()


def _messages() -> dict[str, Any]:
    events_ = {
        message.__name__: {
            "name": message.type, "title": message.__name__, "summary": _summary(message),
            "contentType": "application/cloudevents+json",
            "payload": {"$ref": SCHEMAS.format(model=f"{message.__name__}Event")},
        }
        for message in MESSAGES
    }  # fmt: skip
    plain = {
        _plain_name(channel): {
            "title": _plain_name(channel), "summary": f"The body is {channel.plain}.", "contentType": "text/plain",
            "payload": {"type": "string"},
        }
        for channel in CHANNELS.values() if not channel.messages
    }  # fmt: skip
    return events_ | plain


def _schemas() -> dict[str, Any]:
    models: Any = [(model, "validation") for model in (Event, *MESSAGES)]
    schemas: dict[str, Any] = models_json_schema(models, ref_template=SCHEMAS)[1]["$defs"]
    schemas["CloudEvent"] = schemas.pop("Event")
    for message in MESSAGES:
        schema = schemas[message.__name__]
        for name, doc in field_docs(message).items():
            alias = message.model_fields[name].alias or name
            schema["properties"][alias]["description"] = doc
        schemas[f"{message.__name__}Event"] = {
            "allOf": [
                {"$ref": SCHEMAS.format(model="CloudEvent")},
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": message.type},
                        "data": {"$ref": SCHEMAS.format(model=message.__name__)},
                    },
                },
            ]
        }
    return dict(sorted(schemas.items()))


def _summary(message: type[Message]) -> str:
    return " ".join((inspect.getdoc(message) or "").split("\n\n")[0].split())


def _subject_table() -> str:
    rows = ["| subject | what travels there | messages | stream |", "|---|---|---|---|"]
    for channel in CHANNELS.values():
        names = ", ".join(f"[{m.__name__}](#{m.__name__.lower()})" for m in channel.messages) or channel.plain
        rows.append(f"| `{channel.address}` | {channel.summary} | {names} | {channel.stream or '-'} |")
    return "\n".join(rows)


def _stream_table() -> str:
    rows = ["| stream or bucket | what it is for | subjects | kept | at most |", "|---|---|---|---|---|"]
    for stream in topology.STREAMS:
        age = f"{stream.max_age.total_seconds() / 3600:g} h" if stream.max_age else "without end"
        kept = f"until it is done, {age}" if stream.retention == "workqueue" else age
        patterns = ", ".join(f"`{subject}`" for subject in stream.subjects)
        rows.append(f"| {stream.name} | {stream.why} | {patterns} | {kept} | {stream.max_bytes / topology.GIB:g} GiB |")
    for bucket in topology.BUCKETS:
        size = f"{bucket.max_bytes / topology.GIB:g} GiB"
        kept = "the newest of each key" + (f", {bucket.max_age.days} days" if bucket.max_age else "")
        rows.append(f"| {bucket.name} | {bucket.why} | `$KV.{bucket.name}.>` | {kept} | {size} |")
    return "\n".join(rows)


def _message_tables() -> str:
    schemas = _schemas()
    return "\n\n".join(_message_table(message, schemas[message.__name__], schemas) for message in MESSAGES)


def _message_table(message: type[Message], schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    where = ", ".join(f"`{channel.address}`" for channel in CHANNELS.values() if message in channel.messages)
    rows = [
        f"### {message.__name__}", "", _summary(message), "", f"Type `{message.type}`, on {where}.", "",
        "| field | type | default | meaning |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, field in schema["properties"].items():
        needed = name in schema.get("required", [])
        default = "**needed**" if needed else f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
        meaning = field.get("description", "").replace("|", "\\|")
        rows.append(f"| `{name}` | {_type(field, schemas)} | {default} | {meaning} |")
    return "\n".join(rows)


def _type(field: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Say a JSON Schema type in a few words."""
    if "$ref" in field:
        return _named_type(field["$ref"].rpartition("/")[2], schemas)
    if "allOf" in field:
        return _type(field["allOf"][0], schemas)
    if "anyOf" in field:
        return " or ".join(_type(option, schemas) for option in field["anyOf"])
    if "enum" in field or "const" in field:
        return " or ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), schemas)}"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"object of {_type(inner, schemas)}" if isinstance(inner, dict) else "object"
    if field.get("format") == "date-time":
        return "RFC 3339 time with zone"
    return _limited(field)


def _named_type(name: str, schemas: dict[str, Any]) -> str:
    named = schemas[name]
    if "enum" in named:
        return _type(named, schemas)
    return f"{name} ({', '.join(f'`{key}`' for key in named['properties'])})"


def _limited(field: dict[str, Any]) -> str:
    limits = [
        f"{word} {field[key]}"
        for key, word in {
            "minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "minLength": "length ≥", "maxLength": "length ≤"
        }.items()
        if key in field
    ]  # fmt: skip
    return " ".join([str(field.get("type", "anything")), f"({', '.join(limits)})" if limits else ""]).strip()


def main() -> None:
    """Write both files."""
    ASYNCAPI.write_text(asyncapi(), encoding="utf-8")
    EVENTS.write_text(events(EVENTS.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
