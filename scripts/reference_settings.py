"""docs/reference/settings.md: each key of the settings file, with its unit, range, default and an example."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from reactor.settings.model import Settings
from scripts import reference_examples as examples
from scripts import reference_words as words

ABOUT = """The settings are one YAML file, `reactor.yaml`: `reactor run --config reactor.yaml`, or `REACTOR_CONFIG`.
They hold addresses and secrets, so that rule files need none. Every key may be left out; one that is required, with
its part.

- **From the environment.** Each key has a variable, which beats the file: `REACTOR_`, then the keys from outside in
  with `__` between them. `bus.url` is `REACTOR_BUS__URL`, `logFormat` is `REACTOR_LOG_FORMAT`, `receiver.bodySeconds`
  is `REACTOR_RECEIVER__BODY_SECONDS`. Lists and mappings are JSON: `REACTOR_RULE_FILES='["a.yaml"]'`.
- **Units** are in the type; times are seconds. `NAME` is a name of your own, which rule files use.
- **Examples** are from [whole files](../examples/keys/reactor.yaml) that a test loads.
- `reactor doctor` tries what the settings name, `reactor schema settings` prints the JSON Schema for editors."""


def page(head: str) -> str:
    """Give the page."""
    places = _places()
    headings = {cls: " and ".join(names) for cls, names in places.items()}
    lines = [head, "# The settings file, key by key\n", f"{ABOUT}\n", "## All keys at the top\n"]
    lines += _table(Settings, headings)
    for cls, heading in headings.items():
        lines += [f"\n## {heading}\n", f"{' '.join(str(cls.__doc__).split())}\n", *_table(cls, headings)]
    return "\n".join(lines) + "\n"


@cache
def _schema() -> words.Schema:
    return Settings.model_json_schema()


def _table(cls: type[BaseModel], headings: Mapping[type[BaseModel], str]) -> Iterator[str]:
    schema = _schema()
    if cls is not Settings:
        schema = schema["$defs"][cls.__name__] | {"$defs": schema["$defs"]}
    by_name = {one.__name__: heading for one, heading in headings.items()}

    def link(name: str) -> str | words.Schema:
        heading = by_name.get(name)
        return f"[{heading}](#{words.anchor(heading)})" if heading else schema["$defs"][name]

    yield words.HEAD
    for name, field in cls.model_fields.items():
        key = field.alias or name
        meaning = schema["properties"][key].get("description")
        if not meaning:
            raise KeyError(f"{cls.__name__}.{key} has no meaning: write a docstring below the field")
        default = words.default(schema["properties"][key], required=key in schema.get("required", ()))
        of_type = words.type_of(schema["properties"][key], link, key)
        example = examples.of(cls, key, schema["properties"][key].get("default"))
        yield words.row(key, of_type, default, example, " ".join(meaning.split()))


def _places() -> dict[type[BaseModel], list[str]]:
    """Give where each part is: `bus`, `prometheus.NAME`."""
    found: dict[type[BaseModel], list[str]] = {}

    def walk(cls: type[BaseModel], path: str) -> None:
        for name, field in cls.model_fields.items():
            for below, end in _models(field.annotation):
                place = f"{path}{field.alias or name}{end}{_of_a_kind(below)}"
                found.setdefault(below, []).append(place)
                walk(below, f"{place}.")

    walk(Settings, "")
    return found


def _of_a_kind(cls: type[BaseModel]) -> str:
    """Of several models for one place, the word that tells which."""
    kinds = get_args(cls.model_fields["kind"].annotation) if "kind" in cls.model_fields else ()
    return f" ({kinds[0]})" if len(kinds) == 1 else ""


def _models(annotation: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """Give the models of an annotation, with `.NAME` where they are in a mapping."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation, ""
        return
    for one in get_args(annotation):
        for cls, end in _models(one):
            yield cls, f".NAME{end}" if get_origin(annotation) is dict else end
