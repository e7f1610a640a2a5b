#!/usr/bin/env python3
"""Write docs/reference/ from the models, the reasons and the command line: what they say, and nothing else.

Run it with .venv/bin/python scripts/gen-rule-reference.py after a change there; tests/house/test_reference_docs.py
fails when they differ.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import click
from pydantic import BaseModel

from reactor.cli.main import COMMANDS, cli
from rules import catalog, loader
from rules.core.reasons import SENTENCES, Because, Held
from rules.rehearsal.rule_tests import model as testfile
from rules.rulefile import guards, model, sources
from rules.rulefile.described import own_texts
from scripts import reference_examples as examples
from scripts import reference_settings, reference_words

FOLDER = ROOT / "docs" / "reference"
HEAD = "<!-- Written by scripts/gen-rule-reference.py: change the source, not this page. -->\n"
ABOUT_RULES = """One rule file is one YAML document: `apiVersion: reactor/v1`, `sources` (where health comes from) and
`rules` (what to do about it). Durations are numbers of seconds. `reactor check` finds every mistake, `reactor schema`
prints the JSON Schema of all this for editors. Each example is from a
[whole file](../examples/keys/TrafficFailover.yaml) that a test loads; a long one is only there."""
ABOUT_GUARDS = """Limits of what rules may do: on a rule under `guards`, or for several rules under the file's `guards`.
None of them stops a step back to safety."""
ABOUT_TESTS = """A test file is one YAML document beside its rule file (`shop.yaml`, `shop_test.yaml`):
`apiVersion: reactor/v1`, `ruleFiles` (paths relative to the test file) and `tests`, each with these keys:"""
ABOUT_REASONS = """Every action says why it is asked for, and every hold why nothing is done: one word for machines, one
sentence for people. `reactor simulate`, `reactor test`, `reactor status`, the log and the bus show them."""
PLAIN = {
    "RuleTest.name": "A promise, in a user's words. Unique in its file.", "inputs": "What sources say.",
    "Input.target": "Whose health this is.", "GivenInventory.at": "From this second on.",
    "GivenInventory.route": "Its state at that time.", "cluster": "Its cluster.", "kind": "Which object it is.",
    "namespace": "Its namespace.", "name": "Its name.",
    "RouteGiven.rule": "Index or name, where the rule file names one.", "annotations": "Those of the object.",
    "labels": "Those of the object.", "backends": "In the route's order.", "exists": "`false`: it has been deleted.",
    "GivenWeight.service": "As the route names it.", "GivenWeight.weight": "Its current weight.",
    "action": "What is asked for.", "object": "What it is about: `east/shop/TrafficSplit/checkout`.",
    "because": "Why it is asked for.", "message": "The text of the notification.", "detail": "The reason's details.",
    "mode": "`DryRun`: it would act.", "id": "`rule/object/generation`.", "Happening.rule": "The rule's name.",
    "phase": "Of a ZoneStep.", "Happening.status": "Of a ZoneStep.", "step": "Of a ZoneStep.",
    "undo": "`true`: the step is undone.", "GivenInventory.zones": "Their state at that time.",
    "Commanded.at": "In this second.", "pause": "As `reactor pause`.", "resume": "As `reactor resume`.",
    "approve": "As `reactor approve`.", "reject": "As `reactor reject`.",
    "Rejected.forSeconds": "For so long the same is not asked for again.",
    "isolateZone": "As `reactor zone isolate`.", "failbackZone": "As `reactor zone failback`.",
    "retryZone": "As `reactor zone retry`.", "failoverTraffic": "Traffic leaves the primary.",
    "failbackTraffic": "It comes back to it.", "releaseTraffic": "The rule decides again.",
    "forSeconds": "For so long; default: until released.", "Returned.force": "Also to what is not Healthy.",
    "Moved.to": "The services that get it; default: the ready secondaries.",
    "GivenCommand.rule": "The rule's name; for pause and resume a pattern of names.", "GivenCommand.by": "Who says it.",
    "GivenCommand.reason": "Why.", "OfZone.zone": "The zone's name.",
    "force": "Skip the guards that a person can skip.",
    "allowSingleZone": "Services that may go although all their copies are in the zone.",
    "nodes": "How many nodes the zone has.", "healthyNodes": "How many of them are Ready.",
    "ZonesGiven.zones": "By the zone's name.", "demandNodes": "How many nodes the load needs; none: not known.",
    "quorumMembers": "How many ready members of a quorum each zone holds.",
    "quorumSize": "How many members there are with those that are not ready; default: all are.",
    "singleZoneServices": "Services that have all their copies in one zone.",
    "leasesExpired": "By zone, the share of its nodes whose Leases have run out.",
    "apiReachable": "Whether the API server answers.",
}  # fmt: skip
"""Descriptions of keys of test files whose models say what they are by their name and type alone: of one model, or of
any. Keys of rule files have a docstring in their model, which is also their description in the JSON Schema."""
REASONS = (Because.__name__, Held.__name__)
Schema = Mapping[str, Any]


@cache
def definitions() -> Mapping[str, Schema]:
    """Schemas of all models, by name."""
    found: dict[str, Schema] = {"FileGuard": loader.schema()["properties"]["guards"]["items"]}
    for name, schema in (*loader.schema()["$defs"].items(), *testfile.schema()["$defs"].items()):
        if found.setdefault(name, schema) != schema:
            raise ValueError(f"two models are called {name}: a page has one heading for it")
    return found


def parts(*models: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models inside of these, in the order of their keys, each once and none of themselves."""
    seen = set(models)
    todo: list[Any] = [field.annotation for cls in models for field in cls.model_fields.values()]
    while todo:
        item = todo.pop(0)
        if isinstance(item, type) and issubclass(item, BaseModel):
            if item not in seen:
                seen.add(item)
                yield item
                todo = [*(field.annotation for field in item.model_fields.values()), *todo]
        else:
            todo = [*get_args(item), *todo]


@cache
def meanings(cls: type[BaseModel]) -> Mapping[str, str]:
    """The sentence under each field, of this model and those that it grew from."""
    out: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not (isinstance(base, type) and issubclass(base, BaseModel)) or base is BaseModel:
            continue
        out |= {name: " ".join(text.split()) for name, text in own_texts(base).items()}
    return out


def table(cls: type[BaseModel], schema: Schema, *, without: type[BaseModel] | None = None) -> Iterator[str]:
    """One row for each key: name, type, default, example, meaning."""
    yield reference_words.HEAD
    properties, required = schema["properties"], schema.get("required", ())
    for name, field in cls.model_fields.items():
        key = field.alias or name
        if (key == "kind" and "const" in properties[key]) or (
            without is not None and name in without.model_fields and not _other(cls, without, name)
        ):
            continue
        default = reference_words.default(properties[key], required=key in required)
        of_type = reference_words.type_of(properties[key], _linked)
        example = examples.of(cls, key, properties[key].get("default"))
        yield reference_words.row(key, of_type, default, example, _meaning(cls, name, key))


def _linked(name: str) -> str | Schema:
    if name in REASONS:
        return "[a reason](reasons.md)"
    return definitions()[name] if "enum" in definitions()[name] else f"[{name}](#{name.lower()})"


def _meaning(cls: type[BaseModel], name: str, key: str) -> str:
    """Raises KeyError where the key has no meaning: add a sentence below the field, or a line to PLAIN."""
    if found := meanings(cls).get(name) or PLAIN.get(f"{cls.__name__}.{key}") or PLAIN.get(key):
        return found
    raise KeyError(f"{cls.__name__}.{key} has no meaning: write one below the field")


def _other(cls: type[BaseModel], base: type[BaseModel], name: str) -> bool:
    return cls.model_fields[name].default != base.model_fields[name].default or (
        cls.model_fields[name].is_required() != base.model_fields[name].is_required()
    )


def rule_file() -> str:
    """docs/reference/rule-file.md."""
    page = _Page()
    page.say(HEAD, "# The rule file, key by key\n", f"{ABOUT_RULES}\n", "## Rules\n", "### Every rule\n")
    page.say(*table(model.Rule, _common(definitions()["TrafficFailover"])))
    page.shown |= {model.Rule, guards.Guards, guards.FileGuard, *parts(guards.Guards)}
    for rule in catalog.MODELS:
        page.model(rule, without=model.Rule)
        page.models(parts(rule))
    page.say("\n## Guards\n", f"{ABOUT_GUARDS}\n", "### Guards\n", _says(guards.Guards))
    page.say(*table(guards.Guards, definitions()["Guards"]), "\n### FileGuard\n", _says(guards.FileGuard))
    page.say(*table(guards.FileGuard, definitions()["FileGuard"], without=guards.Guards))
    page.shown -= set(parts(guards.Guards))
    page.models(parts(guards.Guards))
    page.say("\n## Sources\n", "### Every source\n", *table(sources.Source, definitions()["HttpProbe"]))
    page.say("\n### Every probe\n", _says(sources.Probe))
    page.say(*table(sources.Probe, definitions()["HttpProbe"], without=sources.Source))
    page.shown |= {sources.Source, sources.Probe}
    for origin in get_args(sources.LoadedSource):
        page.model(origin, without=sources.Probe if issubclass(origin, sources.Probe) else sources.Source)
        page.models(parts(origin))
    page.say("\n## Rule tests\n", f"{ABOUT_TESTS}\n")
    page.say(*table(testfile.RuleTest, testfile.schema()["properties"]["tests"]["items"]))
    page.models(parts(testfile.RuleTest))
    return "\n".join(page.lines) + "\n"


class _Page:
    """The lines of a page, and the models that are on it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: set[type[BaseModel]] = set()

    def say(self, *lines: str) -> None:
        self.lines += lines

    def model(
        self, cls: type[BaseModel], *, without: type[BaseModel] | None = None, beside: type[BaseModel] | None = None
    ) -> None:
        self.shown.add(cls)
        self.say(f"\n### {cls.__name__}\n", _says(cls))
        if whole := [path.name for path in examples.files() if path.stem.partition("-")[0] == cls.__name__]:
            self.say(f"Whole files: {', '.join(f'[{name}](../examples/keys/{name})' for name in whole)}.\n")
        if beside is not None:
            self.say(f"Besides the keys of [{beside.__name__}](#{beside.__name__.lower()}):\n")
        self.say(*table(cls, definitions()[cls.__name__], without=without))

    def models(self, found: Iterable[type[BaseModel]]) -> None:
        """Show these. One that only adds to another of them says so."""
        found = [cls for cls in found if cls not in self.shown]
        for cls in found:
            base = next((base for base in cls.__mro__[1:] if base in found), None)
            self.model(cls, without=base, beside=base)


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
        "Exit codes, command by command: [operations](../operations.md#exit-codes).\n",
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
        for part, below in command.commands.items() if isinstance(command, click.Group) else ():
            deeper = click.Context(below, info_name=part, parent=inside, max_content_width=100)
            out += [f"### reactor {name} {part}\n", f"```text\n{_help(below, deeper)}\n```\n"]
    return "\n".join(out)


def settings() -> str:
    """docs/reference/settings.md."""
    return reference_settings.page(HEAD)


def _help(command: click.Command, context: click.Context) -> str:
    context.terminal_width = 100  # the same on every terminal
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


PAGES = {"rule-file.md": rule_file, "settings.md": settings, "reasons.md": reasons, "cli.md": command_line}


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
