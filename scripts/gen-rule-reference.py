#!/usr/bin/env python3
"""Write docs/reference/ from the models, the reasons and the command line: what they say, and nothing else.

Run it with .venv/bin/python scripts/gen-rule-reference.py after a change there; tests/house/test_reference_docs.py
fails when they differ.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import click  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from reactor.cli.main import COMMANDS, cli  # noqa: E402
from rules.bench import testfile  # noqa: E402
from rules.language import loader, model, sources  # noqa: E402
from rules.reasons import SENTENCES, Because, Held  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
HEAD = "<!-- Written by scripts/gen-rule-reference.py: change the source, not this page. -->\n"
ABOUT_RULES = """One rule file is one YAML document: `apiVersion: reactor/v1`, `sources` (where health comes from) and
`rules` (what to do about it). Durations are numbers of seconds. `reactor check` finds every mistake, `reactor schema`
prints the JSON Schema of all this for editors."""
ABOUT_TESTS = """A test file is one YAML document beside its rule file (`shop.yaml`, `shop_test.yaml`):
`apiVersion: reactor/v1`, `ruleFiles` (paths relative to the test file) and `tests`, each with these keys:"""
ABOUT_REASONS = """Every action says why it is asked for, and every hold why nothing is done: one word for machines, one
sentence for people. They stand in `reactor simulate`, `reactor test`, `reactor status`, in the log and on the bus."""
PLAIN = {
    "Source.name": "Unique over all files.", "url": "http or https.", "method": "How it asks.",
    "everySeconds": "How often it looks.", "timeoutSeconds": "When a try has failed; at most `everySeconds`.",
    "headers": "Sent with each request.", "followRedirects": "Follow them, or judge the redirect itself.",
    "host": "Name or address.", "port": "TCP port.", "GrpcProbe.service": "The service asked for; empty: the server.",
    "tls": "Speak TLS.", "EndpointsWatch.cluster": "A cluster of the settings.",
    "minReady": "How many ready endpoints make a Service Healthy.", "query": "PromQL, an instant query.",
    "confirm": "The query that proves recovery.", "above": "Unhealthy where the sample is more.",
    "below": "Unhealthy where the sample is less.", "prometheus": "A named endpoint of the settings.",
    "RuleTest.name": "A promise, in a user's words. Unique in its file.", "inputs": "What sources say.",
    "Input.target": "Whose health this is.", "Inventory.at": "From this second on.",
    "Inventory.route": "As it stands then.",
    "cluster": "Where it stands.", "kind": "Which object it is.", "namespace": "Where it stands.", "name": "Its name.",
    "RouteGiven.rule": "Index or name, where the rule file names one.", "annotations": "Those of the object.",
    "labels": "Those of the object.", "backends": "In the route's order.", "exists": "`false`: it has been deleted.",
    "Standing.service": "As the route names it.", "Standing.weight": "As it stands.", "action": "What is asked for.",
    "Expected.rule": "The rule's name.", "object": "What it is about: `east/shop/TrafficSplit/checkout`.",
    "because": "Why it is asked for.", "message": "What people are told.", "detail": "The reason's details.",
    "mode": "`DryRun`: it would act.", "id": "`rule/object/generation`.",
}  # fmt: skip
"""For keys that say in the models what they are by their name and type alone: of one model, or of any."""
Schema = Mapping[str, Any]
Models = tuple[type[BaseModel], ...]


@cache
def meanings(cls: type[BaseModel]) -> Mapping[str, str]:
    """The sentence under each field, of this model and those that it grew from."""
    out: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not (isinstance(base, type) and issubclass(base, BaseModel)) or base is BaseModel:
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        if not isinstance(body, ast.ClassDef):
            raise TypeError(base)
        for field, after in zip(body.body, body.body[1:], strict=False):
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and told:
                out[field.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return out


def table(cls: type[BaseModel], schema: Schema, *, without: type[BaseModel] | None = None) -> Iterator[str]:
    """One row for each key: name, type, default, meaning."""
    yield "| key | type | default | meaning |\n| --- | --- | --- | --- |"
    properties, required = schema["properties"], schema.get("required", ())
    for name, field in cls.model_fields.items():
        key = field.alias or name
        if (key == "kind" and "const" in properties[key]) or (
            without is not None and name in without.model_fields and not _other(cls, without, name)
        ):
            continue
        default = "required" if key in required else _default(properties[key].get("default"))
        yield f"| `{key}` | {_escaped(_type(properties[key]))} | {default} | {_escaped(_meaning(cls, name, key))} |"


def _meaning(cls: type[BaseModel], name: str, key: str) -> str:
    return meanings(cls).get(name) or PLAIN.get(f"{cls.__name__}.{key}") or PLAIN[key]


def _other(cls: type[BaseModel], base: type[BaseModel], name: str) -> bool:
    return cls.model_fields[name].default != base.model_fields[name].default or (
        cls.model_fields[name].is_required() != base.model_fields[name].is_required()
    )


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _default(value: Any) -> str:
    if value is None:
        return "none"
    if value in ([], {}, ""):
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float) and value.is_integer():
        return f"`{int(value)}`"
    return f"`{value}`"


def _type(schema: Schema) -> str:
    """A JSON Schema type in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        enum = getattr(model, name, None) or getattr(testfile, name, None)
        if isinstance(enum, type) and issubclass(enum, Enum):
            words = [str(member.value) for member in enum]
            return ", ".join(f"`{word}`" for word in words) if len(words) <= 5 else "[a reason](reasons.md)"
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object":
            values = schema.get("additionalProperties")
            return f"mapping to {_type(values)}" if isinstance(values, dict) and values else "mapping"
        case "number" | "integer" as kind:
            return _number(schema, "whole number" if kind == "integer" else "number")
        case "boolean":
            return "`true`, `false`"
        case "string":
            longest = schema.get("maxLength")
            return f"text, at most {longest:,}" if longest else "text"
    return "anything"


def _number(schema: Schema, what: str) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if (above := schema.get("exclusiveMinimum")) is not None:
        return f"{what}, more than {above:g}" + (f" to {high:,}" if high is not None else "")
    return f"{what}, {low:g} to {high:,}" if low is not None and high is not None else what


def rule_file() -> str:
    """docs/reference/rule-file.md."""
    definitions = loader.schema()["$defs"] | testfile.schema()["$defs"]
    tests = testfile.schema()["properties"]["tests"]["items"]
    rules: Models = (model.TrafficFailover, model.Notification)
    parts: Models = (model.RouteSelection, model.BackendRule, model.Step)
    origins: Models = (
        sources.HttpProbe, sources.TcpProbe, sources.GrpcProbe, sources.ClusterProbe, sources.LeaseWatch,
        sources.EndpointsWatch, sources.WorkloadWatch, sources.NodeWatch, sources.Quorum, sources.PrometheusQuery,
        sources.AlertmanagerWebhook,
    )  # fmt: skip
    out = [
        HEAD, "# The rule file, key by key\n", f"{ABOUT_RULES}\n", "## Rules\n", "### Every rule\n",
        *table(model.Rule, _common(definitions["TrafficFailover"])),
    ]  # fmt: skip
    for cls in rules:
        out += [f"\n### {cls.__name__}\n", _says(cls), *table(cls, definitions[cls.__name__], without=model.Rule)]
    for cls in parts:
        out += [f"\n### {cls.__name__}\n", _says(cls), *table(cls, definitions[cls.__name__])]
    out += ["\n## Sources\n", "### Every source\n", *table(sources.Source, definitions["HttpProbe"])]
    out += ["\n### Every probe\n", _says(sources.Probe)]
    out += table(sources.Probe, definitions["HttpProbe"], without=sources.Source)
    for origin in origins:
        base = sources.Probe if issubclass(origin, sources.Probe) else sources.Source
        out += [f"\n### {origin.__name__}\n", _says(origin)]
        out += table(origin, definitions[origin.__name__], without=base)
    bounds: Models = (sources.CustomKind, sources.HealthScript, sources.Bound, sources.Confirm)
    for cls in bounds:
        out += [f"\n### {cls.__name__}\n", _says(cls), *table(cls, definitions[cls.__name__])]
    out += [
        "\n## Rule tests\n", f"{ABOUT_TESTS}\n", *table(testfile.RuleTest, tests),
    ]  # fmt: skip
    inside: Models = (testfile.Input, testfile.Inventory, testfile.RouteGiven, testfile.Standing, testfile.Expected)
    for cls in inside:
        out += [f"\n### {cls.__name__}\n", _says(cls), *table(cls, definitions[cls.__name__])]
    return "\n".join(out) + "\n"


def _common(schema: Schema) -> Schema:
    wanted = {field.alias or name for name, field in model.Rule.model_fields.items()}
    return {"properties": {key: schema["properties"][key] for key in wanted}, "required": schema["required"]}


def _says(cls: type[BaseModel]) -> str:
    return f"{inspect.getdoc(cls)}\n"


def reasons() -> str:
    """docs/reference/reasons.md."""
    out = [HEAD, "# Reasons\n", f"{ABOUT_REASONS}\n"]
    for title, words in (("Why something is done", Because), ("Why nothing is done", Held)):
        out += [f"## {title}\n", "| reason | meaning |\n| --- | --- |"]
        out += [f"| `{word.value}` | {SENTENCES[word]} |" for word in words]
        out.append("")
    return "\n".join(out)


def command_line() -> str:
    """docs/reference/cli.md."""
    out = [
        HEAD,
        "# The command line\n",
        "Exit codes: 0 all is well, 1 something was found or failed, 2 the command line is wrong.\n",
    ]
    names = ["-h", "--help"]
    context = click.Context(cli, info_name="reactor", max_content_width=100, help_option_names=names)
    out += [f"```text\n{_help(cli, context)}\n```\n"]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        if command is None:
            raise LookupError(name)
        inside = click.Context(command, info_name=name, parent=context, max_content_width=100)
        out += [f"## reactor {name}\n", f"```text\n{_help(command, inside)}\n```\n"]
    return "\n".join(out)


def _help(command: click.Command, context: click.Context) -> str:
    context.terminal_width = 100  # the same on every terminal
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


PAGES = {"rule-file.md": rule_file, "reasons.md": reasons, "cli.md": command_line}


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
