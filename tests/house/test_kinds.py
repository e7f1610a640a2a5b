"""Whoever adds a kind of rule or source learns here of each place that is still to be filled, by its name.

A table that misses a kind makes it do nothing in silence: guards that limit nothing, worlds that test nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from pydantic import Field

import rules
from reactor.sources import catalog as sources
from rules.catalog import INTERNAL, KINDS
from rules.core.kind import RuleKind
from rules.rehearsal.testing.possible import BECAUSE, HELD
from rules.rehearsal.world import promises, topology
from rules.rulefile.kinds import LoadedRule, LoadedSource
from rules.rulefile.loader import RuleSet
from rules.rulefile.model import Rule
from rules.rulefile.sources import Source

ROOT = Path(rules.__file__).parent
MODELS = frozenset(get_args(LoadedRule))
TABLES: Mapping[str, Collection[type[Rule]]] = {
    "rules/catalog.py, KINDS": KINDS.keys() - INTERNAL,
    "the kind's `because`, by rules/rehearsal/testing/possible.py": BECAUSE,
    "the kind's `holds`, by rules/rehearsal/testing/possible.py": HELD,
    "rules/rehearsal/world/promises.py, _ACTS": promises._ACTS,
    "rules/rehearsal/world/promises.py, _LOSSES": promises._LOSSES,
}


class Forgotten(Rule):
    """A kind of which somebody forgot whom its guards count."""

    kind: Literal["Forgotten"] = "Forgotten"


class Remembered(Forgotten):
    """A kind that is in no table."""

    match: str = Field(default="service/**")

    @property
    def default_peers(self) -> tuple[str, ...]:
        return (self.match,)


class NobodyRuns(Source):
    """A kind of source without a module."""

    kind: Literal["NobodyRuns"] = "NobodyRuns"


def missing(models: Collection[type[Rule]]) -> list[str]:
    """Each table with the kinds that it has not, and those that it has too many."""
    return [
        f"{table}: {model.__name__}"
        for table, known in TABLES.items()
        for model in {*models, *known}
        if not (model in models and model in known)
    ]


def test_every_kind_of_rule_is_in_every_table() -> None:
    assert missing(MODELS) == []


def test_a_kind_that_is_in_no_table_is_named_with_each_of_them() -> None:
    assert sorted(missing({*MODELS, Remembered})) == sorted(f"{table}: Remembered" for table in TABLES)


def test_a_kind_has_to_say_everything() -> None:
    assert [one.name for one in fields(RuleKind) if (one.default, one.default_factory) != (MISSING, MISSING)] == []
    known: Any = {one.name: getattr(KINDS[next(iter(MODELS))], one.name) for one in fields(RuleKind)}
    for name in known:
        with pytest.raises(TypeError, match=name):
            RuleKind(**{key: value for key, value in known.items() if key != name})


def test_a_kind_without_peers_cannot_be_written() -> None:
    """A copy of Notification with guards once acted where Notification held: nobody had said whom they count."""
    with pytest.raises(TypeError, match="default_peers"):
        Forgotten(name="x")  # type: ignore[abstract]
    assert Remembered(name="x").default_peers == ("service/**",)


def test_a_world_does_not_pass_over_a_kind() -> None:
    with pytest.raises(AssertionError, match="Remembered"):
        list(topology._watched(Remembered(name="x"), topology.Cast(RuleSet())))  # type: ignore[arg-type]


def test_every_kind_of_source_has_who_runs_it() -> None:
    kinds = {get_args(one.model_fields["kind"].annotation)[0] for one in get_args(LoadedSource)}
    assert kinds == sources.MODULES.keys() | sources.ELSEWHERE
    assert not sources.MODULES.keys() & sources.ELSEWHERE


def test_a_source_that_nobody_runs_does_not_start() -> None:
    with pytest.raises(LookupError, match="NobodyRuns: no line in MODULES"):
        sources.is_run(NobodyRuns.model_fields["kind"].default)


def test_the_engine_names_no_kind() -> None:
    """What a kind is about is said by the kind: its word in the engine is a place that the next kind will miss."""
    names = [re.escape(model.__name__) for model in KINDS]
    words = re.compile(rf"rules\.kinds|\b({'|'.join(names)}|Traffic\w*|Workload\w*|Zone\w*|Notification\w*)\b")
    found = [
        f"rules/engine/{path.name}:{number}: {line.strip()}"
        for path in sorted((ROOT / "engine").glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if words.search(line)
    ]
    assert found == []
