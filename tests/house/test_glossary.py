"""docs/glossary.md against the code: a name whose words it does not explain is found, and one on the bus without a row.

A name is taken apart into its words. Each is a word of a term of the glossary, or ordinary English of
`ordinary_words.txt`: a word of the field, or of ours, gets a row in the glossary instead. Endings make no difference:
`watches`, `watched` and `watcher` are `watch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from bus import topology
from bus.envelope import MESSAGES
from reactor.runtime.telemetry import REGISTRY
from reactor.settings.model import Settings
from tests.house.test_names import generator as generator
from tests.house.test_names import words_of

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ORDINARY = Path(__file__).with_name("ordinary_words.txt").read_text("utf-8").split()
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
_ENDINGS = ("ations", "ation", "ions", "ion", "ings", "ing", "ers", "ors", "ed", "er", "or", "es", "s", "e", "y")


def words(name: str) -> list[str]:
    """The words of a name: `KubeApi`, `reactor_held_actions`, `cancel-eviction`."""
    return [word.lower() for word in _WORD.findall(name)]


def root(word: str) -> str:
    """The word without its ending."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending)
    return word


def unexplained(names: Iterable[str], terms: Iterable[str], ordinary: Iterable[str]) -> dict[str, str]:
    """Words that are neither of a term nor ordinary: word to a name that has it."""
    known = {root(word) for term in terms for word in words(term)} | {root(word) for word in ordinary}
    return {word: name for name in names for word in words(name) if root(word) not in known}


def settings_keys(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    """The keys of the settings file, at every depth."""
    if model in seen:
        return
    seen.add(model)
    for key, field in model.model_fields.items():
        yield key
        for part in parts_of(field.annotation):
            yield from settings_keys(part, seen)


def parts_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from parts_of(one)


def metrics(registry: CollectorRegistry) -> list[str]:
    return [one.name for one in registry.collect()]


def on_the_bus() -> list[str]:
    return [one.type for one in MESSAGES] + [one.name for one in (*topology.STREAMS, *topology.BUCKETS)]


@pytest.fixture(scope="module")
def names(generator: ModuleType) -> list[str]:
    return [*generator.classes(), *metrics(REGISTRY), *settings_keys(Settings, set()), *on_the_bus()]


def test_every_word_of_a_public_name_is_in_the_glossary_or_ordinary(names: list[str]) -> None:
    found = unexplained(names, words_of(GLOSSARY), ORDINARY)
    lines = [f"docs/glossary.md: a row for {word!r}, as in {name}" for word, name in found.items()]
    assert not lines, "\n".join(lines)


def test_an_ordinary_word_is_there_once_is_used_and_is_no_term(names: list[str]) -> None:
    roots = [root(word) for word in ORDINARY]
    terms = {root(words(term)[0]) for term in words_of(GLOSSARY) if len(words(term)) == 1}
    used = {root(word) for name in names for word in words(name)}
    assert sorted(ORDINARY) == ORDINARY
    assert [word for word in ORDINARY if roots.count(root(word)) > 1 or root(word) in terms] == []
    assert [word for word in ORDINARY if root(word) not in used] == []


def without_a_row(wire: Iterable[str], glossary: str) -> list[str]:
    return [name for name in wire if f"\n| `{name}` | " not in glossary]


def test_every_name_on_the_bus_has_a_row() -> None:
    assert without_a_row(on_the_bus(), GLOSSARY) == []


def test_a_row_of_the_bus_is_there_for_something() -> None:
    section = GLOSSARY.partition("## On the bus\n")[2].partition("\n## ")[0]
    assert {term.strip("`") for term in words_of(section)} == {*on_the_bus()}


def test_a_class_with_a_new_noun_a_metric_and_a_key_are_found() -> None:
    terms, ordinary = ("**desired state**", "`HttpProbe`", "**watch**"), ("count", "total")
    known = ("DesiredState", "HttpWatcher", "reactor_probes_total", "counted_states")
    assert unexplained(known, terms, (*ordinary, "reactor")) == {}
    new = ("DesiredTurnip", "reactor_plums_total", "kumquat_state")
    assert unexplained(new, terms, (*ordinary, "reactor")) == {
        "turnip": "DesiredTurnip", "plums": "reactor_plums_total", "kumquat": "kumquat_state"
    }  # fmt: skip


def test_a_name_on_the_bus_without_a_row_is_found() -> None:
    glossary = "\n| `dev.alert-reactor.plum.v1` | A plum. |\nAlso `reactor_plums`.\n"
    wire = ("dev.alert-reactor.plum.v1", "reactor_plums", "dev.alert-reactor.plums.v1")
    assert without_a_row(wire, glossary) == ["reactor_plums", "dev.alert-reactor.plums.v1"]
