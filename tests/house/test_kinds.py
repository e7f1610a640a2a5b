"""Completeness of kinds: after adding a kind of rule or source, each place that is still to be filled, by its name.

A table that misses a kind makes it do nothing in silence: guards that limit nothing, worlds that test nothing.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, Field

import rules
from bus.messages import Action, ActionMessage, Carrier, Mode, Notify
from reactor.sources import catalog as sources
from rules import catalog
from rules.catalog import FILE_KINDS, KINDS, MODELS
from rules.core.group import Group
from rules.core.kind import RuleKind
from rules.core.member import Member
from rules.core.reasons import SENTENCES, Because, Held
from rules.kinds.quorum.model import QuorumRule
from rules.limits.limiter import LimiterRule
from rules.limits.limiters import limiters
from rules.rehearsal.world import promises, world_topology
from rules.rulefile.file_kind import FileKind
from rules.rulefile.guards import Guards
from rules.rulefile.model import Rule
from rules.rulefile.sources import LoadedSource, Source
from rules.summary import MOVING

ROOT = Path(rules.__file__).parent


class Forgotten(Rule):
    """A kind whose author forgot the targets that its guards count."""

    kind: Literal["Forgotten"] = "Forgotten"


class Remembered(Forgotten):
    """A kind that is in no table."""

    match: str = Field(default="service/**")

    @property
    def default_peers(self) -> tuple[str, ...]:
        return (self.match,)


class CountsNobody(Remembered):
    """A kind whose guards would count no targets."""

    @property
    def default_peers(self) -> tuple[str, ...]:
        return ()


class NobodyRuns(Source):
    """A kind of source without a module."""

    kind: Literal["NobodyRuns"] = "NobodyRuns"


def test_a_kind_whose_guards_would_count_no_targets_is_refused() -> None:
    """It would act without a limit, and `check` would find no fault."""
    limit = Guards(max_unhealthy=2)
    assert limiters([Remembered(name="a", mode=Mode.ENFORCE, guards=limit)])[0].peers == ("service/**",)
    with pytest.raises(NotImplementedError, match="default_peers of CountsNobody is empty"):
        limiters([CountsNobody(name="a", mode=Mode.ENFORCE, guards=limit)])


def test_every_folder_of_a_kind_is_in_the_catalog() -> None:
    folders = {path.parent.name for path in (ROOT / "kinds").glob("*/__init__.py")}
    listed = Counter(catalog._FOLDERS)
    assert [f"rules/catalog.py, _FOLDERS: {name}" for name in sorted(folders - listed.keys())] == []
    assert [name for name, times in listed.items() if times > 1 or name not in folders] == []


def test_a_rule_file_calls_each_kind_by_the_name_of_its_model() -> None:
    assert [get_args(model.model_fields["kind"].annotation) for model in MODELS] == [(one.__name__,) for one in MODELS]


def test_what_a_kind_asks_for_is_checked_in_simulated_worlds() -> None:
    for model in MODELS:
        assert len(promises.checks_of(model)) == 2
    with pytest.raises(LookupError, match=r"QuorumRule: rules/rehearsal/world/promises.py, _CHECKS has no action"):
        promises.checks_of(QuorumRule)


@pytest.mark.parametrize(("kind", "kinds"), [(RuleKind, KINDS), (FileKind, FILE_KINDS)])
def test_a_kind_has_to_say_everything(kind: Any, kinds: Mapping[type[Rule], Any]) -> None:
    assert [one.name for one in fields(kind) if (one.default, one.default_factory) != (MISSING, MISSING)] == []
    known = {one.name: getattr(kinds[MODELS[0]], one.name) for one in fields(kind)}
    for name in known:
        with pytest.raises(TypeError, match=name):
            kind(**{key: value for key, value in known.items() if key != name})


def test_the_model_and_the_checks_of_a_kind_are_in_its_folder() -> None:
    """A rule file's own modules name no kind: the next one would be missed there."""
    homes = {model.__name__: Path(inspect.getfile(model)) for model in MODELS}
    assert [name for name, path in homes.items() if path != ROOT / "kinds" / path.parent.name / "model.py"] == []
    strangers = {
        f"{model.__name__}.{one.name}: {home}"
        for model, kind in FILE_KINDS.items()
        for one in fields(kind)
        if (home := getattr(getattr(kind, one.name), "__module__", "")).startswith("rules.kinds.")
        and home.split(".")[2] != model.__module__.split(".")[2]
    }
    assert strangers == set()
    below = [
        node for path in (ROOT / "rulefile").rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]
    named = {
        node.id if isinstance(node, ast.Name) else node.name for node in below if isinstance(node, ast.Name | ast.alias)
    }
    assert named & homes.keys() == set()


def test_a_kind_without_peers_cannot_be_written() -> None:
    """A copy of Notification with guards once acted where Notification held: no code said which targets they count."""
    with pytest.raises(TypeError, match="default_peers"):
        Forgotten(name="x")  # type: ignore[abstract]
    assert Remembered(name="x").default_peers == ("service/**",)


def test_a_world_has_what_the_guards_of_an_unknown_kind_count() -> None:
    cast = world_topology.Topology((), tolerations={"service/east/shop/web": {0.0}})
    watched = list(world_topology._watched(Remembered(name="x", toleration_seconds=5), cast))
    assert ("service/east/shop/web", 5) in watched


def test_every_carrier_has_its_word_in_rule_files_and_every_action_its_carrier() -> None:
    """By the names alone: the catalog of carriers does not start where one is missing."""
    folder = ROOT.parent / "reactor" / "actions" / "carriers"
    by_word = [one for one in get_args(Action) if get_args(field_of(one, "carrier")) == get_args(Carrier)]
    names = (*get_args(Carrier), *(one.__name__ for one in get_args(Action) if one not in by_word))
    wanted = {f"carry_{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}.py" for name in names}
    assert wanted ^ {path.name for path in folder.glob("carry_*.py")} == set()


def field_of(message: type[BaseModel], name: str) -> object:
    return message.model_fields[name].annotation if name in message.model_fields else None


def test_every_action_says_what_the_engine_the_executor_and_rule_tests_want_to_know() -> None:
    """Without its own, `ActionMessage` raises: no action is carried out, or printed."""
    actions = get_args(Action)
    silent = [
        f"{action.__name__}.{name}: {inspect.getfile(action)}"
        for action in actions
        for name in ("summary", "shown", "peers")
        if getattr(action, name) is getattr(ActionMessage, name)
    ]
    assert silent == []
    asked = {action for kind in KINDS.values() for action in kind.actions}
    unasked = {*actions} - asked - {Notify}
    assert [f"{action.__name__}: no rule kind asks for it, see `actions` of its KIND" for action in unasked] == []


def test_every_guard_limits_something_and_is_a_reason_that_tests_have_to_show() -> None:
    """By the attributes that the code reads: a limit that no line reads limits nothing."""
    fields_ = Guards.model_fields.keys()
    limiting = [*(ROOT / "engine").glob("*.py"), *(ROOT / "limits").glob("*.py")]
    assert fields_ - attributes(*limiting) == set()
    assert fields_ - {"rounding", "peers"} - attributes(ROOT / "rehearsal" / "rule_tests" / "possible.py") == set()


def test_every_guard_and_every_reason_is_explained_to_operators() -> None:
    """The guards by a row of their own, and the reasons by what to do."""
    docs = ROOT.parent / "docs"
    guards, status = docs / "concepts" / "guards.md", docs / "how-to" / "read-the-status.md"
    keys = [str(one.alias) for name, one in Guards.model_fields.items() if name not in ("rounding", "peers")]
    words = [one.value for one in (*Held, *Because)]
    silent = [
        f"{page.relative_to(ROOT.parent)}: {word}"
        for page, those in ((guards, keys), (status, words))
        for word in those
        if f"\n| `{word}` |" not in page.read_text("utf-8")
    ]
    assert not silent, "\n".join(silent)


def attributes(*paths: Path) -> set[str]:
    """The names of all attributes in these files."""
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_every_reason_has_its_sentence() -> None:
    assert SENTENCES.keys() == {*Because, *Held}


def test_every_source_that_has_a_kind_can_be_written_in_a_rule_file() -> None:
    """By its line in the union: without it the source is a model like any other, and no other test misses it."""
    written = get_args(LoadedSource)
    for module in pkgutil.iter_modules([str(ROOT / "rulefile")], "rules.rulefile."):
        importlib.import_module(module.name)
    missing = [one for one in subclasses(Source) if one not in written and one.__module__.startswith("rules.")]
    lines = [f"rules/rulefile/sources.py, LoadedSource: | {one.__name__}" for one in missing if has_a_kind(one)]
    assert not lines, "\n".join(lines)


def subclasses(model: type[Source]) -> Iterator[type[Source]]:
    """All classes below it."""
    for one in model.__subclasses__():
        yield one
        yield from subclasses(one)


def has_a_kind(model: type[Source]) -> bool:
    """True if rule files name it by a `kind`."""
    return get_origin(field_of(model, "kind")) is Literal


def test_every_kind_of_source_has_who_runs_it() -> None:
    kinds = {get_args(one.model_fields["kind"].annotation)[0] for one in get_args(LoadedSource)}
    assert kinds >= sources.ELSEWHERE
    for kind in kinds - sources.ELSEWHERE:
        assert callable(importlib.import_module(sources.module_of(kind)).run)


def test_a_source_without_a_runner_does_not_start() -> None:
    with pytest.raises(LookupError, match=r"NobodyRuns: no module nobody_runs\.py"):
        sources.is_run(NobodyRuns.model_fields["kind"].default)


def test_the_state_of_each_kind_is_its_own() -> None:
    """By its type a stored group is read, and found to be one of the rule's kind."""
    states = [kind.state for kind in KINDS.values()]
    assert len(set(states)) == len(states)
    homes = {kind.state: Path(inspect.getfile(kind.state)) for model, kind in KINDS.items() if model in MODELS}
    assert [state.__name__ for state, path in homes.items() if path.parent.parent != ROOT / "kinds"] == []


def test_the_engine_reads_nothing_of_the_state_of_a_kind() -> None:
    """By the attributes that it reads. `name.state.x` is a field of a kind's state, whatever it is called."""
    found = [
        f"rules/engine/{path.name}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "engine").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "state"
    ]
    assert found == []
    own = {one.name for one in (*fields(Group), *fields(Member), *fields(RuleKind))}
    of_kinds = {one.name for kind in KINDS.values() if is_dataclass(kind.state) for one in fields(kind.state)}
    engine = attributes(*(ROOT / "engine").glob("*.py"))
    assert (of_kinds - own) & engine == set()


def test_the_engine_names_no_kind() -> None:
    """A kind's name in the engine is a place that the next kind will miss."""
    names = [re.escape(model.__name__) for model in KINDS]
    things = "traffic|workload|zone|taint|quorum|weight|route"
    words = re.compile(rf"rules\.kinds|\b({'|'.join(names)})\b|(?i:\b\w*({things})\w*)")
    assert lines_with(words, "engine") == []


def test_every_kind_that_acts_says_when_its_groups_are_failed_over() -> None:
    """Status, metrics and the watch screen would show a new kind's groups as never moved."""
    forgotten = [model.__name__ for model, kind in KINDS.items() if kind.actions and kind.state not in MOVING]
    assert not forgotten, f"no case in rules/summary.py, is_failed_over: {', '.join(forgotten)}"


def test_no_guard_names_a_kind() -> None:
    """Guards limit every kind alike, by what it says of itself. What they are made of is one kind too."""
    names = [re.escape(model.__name__) for model in KINDS if model is not LimiterRule]
    assert lines_with(re.compile(rf"rules\.kinds|\b({'|'.join(names)})\b"), "core", "limits") == []


def lines_with(words: re.Pattern[str], *folders: str) -> list[str]:
    """The lines of the modules in these folders of rules/ that have one of the words."""
    return [
        f"rules/{folder}/{path.name}:{number}: {line.strip()}"
        for folder in folders
        for path in sorted((ROOT / folder).glob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if words.search(line)
    ]
