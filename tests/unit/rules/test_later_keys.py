"""Keys of a later release stay with the entry they came with, in every list and map of the stored groups of every kind:
when the entry changes, when its neighbours go, and when it moves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bus.envelope import decode
from bus.errors import Malformed
from bus.messages import AcquireRequest, Health, Pause, Taint
from rules.catalog import KINDS
from rules.core.group import Group, OutboxEntry, Paused, StoredAction
from rules.core.later_keys import later_keys, shape_of, with_later
from rules.core.member import Member
from rules.core.values import replace
from rules.engine.group_codec import dump_group, from_python, load_group, to_python, unpacked, without_gone
from rules.engine.pauses import commanded, paused_by
from rules.kinds.notification.state import NotificationState
from tests.examples import many

Place: TypeAlias = tuple[str | int, ...]
STATES = {model.__name__: kind.state for model, kind in KINDS.items()}
MESSAGES = Path(__file__).parents[2] / "golden" / "messages"
ACTIONS = tuple(
    decode((MESSAGES / f"{name}.json").read_bytes()).data
    for name in ("Notify", "SetWeights", "SetTaints", "Place", "Purge")
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
ACTION_IDS = st.text("abc", min_size=1, max_size=2)
SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text("abc/", max_size=3),
    int: st.integers(0, 9),
    float: st.integers(0, 9).map(float),
    bool: st.booleans(),
    datetime: st.integers(0, 9).map(lambda seconds: AT + timedelta(seconds=seconds)),
    Taint: st.just(Taint(key="k", effect="NoSchedule")),
    AcquireRequest: st.just(decode((MESSAGES / "AcquireRequest.json").read_bytes()).data),
    StoredAction: st.builds(
        lambda action, name: action.model_copy(update={"id": name}),
        st.sampled_from(ACTIONS),
        ACTION_IDS,
    ),
}


def values(hint: Any, types: Mapping[Any, Any]) -> st.SearchStrategy[Any]:
    """Values of a type of stored state."""
    hint = types.get(hint, hint) if isinstance(hint, TypeVar) else hint
    if hint in SIMPLE:
        return SIMPLE[hint]
    origin, args = get_origin(hint), get_args(hint)
    match origin:
        case _ if hint is type(None):
            return st.none()
        case _ if origin is Annotated:
            return values(args[0], types)
        case _ if origin is Literal:
            return st.sampled_from(args)
        case _ if origin in (Union, UnionType):
            return st.one_of([values(one, types) for one in args])
        case _ if origin is tuple and args[-1] is ...:
            return lists(values(args[0], types))
        case _ if origin is tuple:
            return st.tuples(*(values(one, types) for one in args))
        case _ if is_dataclass(origin or hint):
            return built(origin or hint, dict(zip(getattr(origin, "__parameters__", ()), args, strict=True)))
        case _ if isinstance(hint, type) and issubclass(hint, Enum):
            return st.sampled_from(hint)
    assert issubclass(origin, Mapping), f"no values of {hint}"
    return st.dictionaries(values(args[0], types), values(args[1], types), max_size=2)


def lists(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Of an entry with an identity no two, as in every list that is stored."""
    return st.lists(one, max_size=2, unique_by=lambda value: identity(value) or id(value)).map(tuple)


def built(kind: Any, types: Mapping[Any, Any]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind, include_extras=True)
    given_ = {one.name: values(hints[one.name], types) for one in fields(kind) if one.name not in ("later", "version")}
    return st.builds(kind, **given_)


def identity(value: Any) -> tuple[object, ...] | None:
    paths = getattr(type(value), "IDENTITY", ())
    return tuple(follow(value, path) for path in paths) or None


def follow(value: Any, path: str) -> object:
    for name in path.split("."):
        value = getattr(value, name)
    return value


def entries(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every object of a group whose keys are fields of stored state; those of messages are refused (test_stored.py)."""
    if is_dataclass(value):
        yield at
        for one in fields(value):
            yield from entries(getattr(value, one.name), (*at, one.name))
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from entries(below, (*at, key))
    elif isinstance(value, tuple):
        for place, below in enumerate(value):
            yield from entries(below, (*at, place))


def inner(value: Any, at: Place) -> Any:
    for part in at:
        value = value[part]
    return value


def marked(group: Group) -> tuple[Group, dict[Place, str]]:
    """The group as a later release has stored it, with a key of its own in each entry."""
    stored = json.loads(unpacked(dump_group(group)))
    marks = {place: f"of {number}" for number, place in enumerate(entries(group))}
    for place, mark in marks.items():
        inner(stored, place)["later"] = mark
    return load_group(json.dumps(stored).encode()), marks


def changed(draw: st.DrawFn, value: Any, was: Place, now: Place, moved: dict[Place, Place]) -> Any:
    """The value as a step may leave it: entries changed, gone, in another order. `moved`: where they are, and were."""
    if is_dataclass(value):
        moved[now] = was
        fixed = {path.partition(".")[0] for path in getattr(type(value), "IDENTITY", ())}
        hints = get_type_hints(type(value), include_extras=True)
        new = {}
        for one in fields(value):
            old = getattr(value, one.name)
            if one.name in ("later", "version") or one.name in fixed:
                continue
            if type(old) in (int, str, bool) and hints[one.name] is type(old) and now:
                new[one.name] = draw(SIMPLE[type(old)])
            else:
                new[one.name] = changed(draw, old, (*was, one.name), (*now, one.name), moved)
        return replace(value, **new)
    if isinstance(value, Mapping):
        kept = [key for key in value if draw(st.booleans())]
        return {key: changed(draw, value[key], (*was, key), (*now, key), moved) for key in kept}
    if isinstance(value, tuple) and any(identity(one) for one in value):
        order = [place for place in draw(st.permutations(range(len(value)))) if draw(st.booleans())]
        return tuple(changed(draw, value[old], (*was, old), (*now, new), moved) for new, old in enumerate(order))
    return value


@cache
def groups(state: type) -> st.SearchStrategy[Group]:
    """Made once: there are some hundred strategies in it."""
    drawn = values(Group[state], {})  # type: ignore[valid-type]  # known when it runs
    return drawn.filter(lambda group: identity(group.paused) not in [identity(one) for one in group.also_paused])


@st.composite
def steps(draw: st.DrawFn, state: type) -> tuple[Group, Group, dict[Place, str]]:
    """A stored group with keys of a later release; the same after a step; and the keys that it is to have, by place."""
    group, marks = marked(draw(groups(state)))
    moved: dict[Place, Place] = {}
    after = changed(draw, group, (), (), moved)
    return group, after, {now: marks[was] for now, was in moved.items()}


def keys(stored: Any, at: Place = ()) -> Iterator[tuple[Place, str]]:
    """The keys of the later release, by place."""
    if isinstance(stored, dict) and isinstance(stored.get("later"), str):
        yield at, stored["later"]
    for key, below in (
        stored.items() if isinstance(stored, dict) else enumerate(stored) if isinstance(stored, list) else ()
    ):
        yield from keys(below, (*at, key))


@pytest.mark.parametrize("kind", STATES)
@many(40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_key_of_a_later_release_stays_with_its_entry(kind: str, data: st.DataObject) -> None:
    group, after, wanted = data.draw(steps(STATES[kind]))
    assert dict(keys(json.loads(unpacked(dump_group(after))))) == wanted
    assert dump_group(without_gone(after)) == dump_group(after)
    assert dict(keys(json.loads(unpacked(dump_group(load_group(dump_group(after))))))) == wanted
    assert load_group(dump_group(group)) == group


@pytest.mark.parametrize("kind", STATES)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(data=st.data())
def test_a_group_is_read_back_from_a_record_of_the_audit_whatever_it_owes(kind: str, data: st.DataObject) -> None:
    state: type = STATES[kind]
    group = data.draw(groups(state))
    assert from_python(json.loads(json.dumps(to_python(group)))) == group


@pytest.mark.parametrize("kind", STATES)
def test_every_list_of_a_stored_group_says_what_its_entries_are_known_by(kind: str) -> None:
    outbox = shape_of(Group[STATES[kind]]).fields["outbox"].entries  # type: ignore[valid-type]  # known when it runs
    assert outbox is not None
    assert outbox.identity == ("action.id",)


@dataclass(frozen=True, slots=True)
class Nameless:
    number: int = 0


@dataclass(frozen=True, slots=True)
class Lists:
    some: tuple[Nameless, ...] = ()


def test_a_list_whose_entries_say_nothing_of_it_is_refused() -> None:
    with pytest.raises(TypeError, match="Nameless is stored in a list"):
        shape_of(Lists)
    with pytest.raises(Malformed, match="no identity"):
        later_keys([{"a": 1, "later": 2}], [{"a": 1}])


@dataclass(frozen=True, slots=True)
class Named:
    IDENTITY: ClassVar = ("name",)
    name: str


@dataclass(frozen=True, slots=True)
class Names:
    some: tuple[Named, ...] = ()


def test_keys_of_two_entries_that_cannot_be_told_apart_are_refused_where_they_differ() -> None:
    known = {"some": [{"name": "a"}, {"name": "a"}]}
    alike = {"some": [{"name": "a", "later": 1}, {"name": "a", "later": 1}]}
    shape = shape_of(Names)
    assert with_later(known, later_keys(alike, known, shape), shape) == alike
    with pytest.raises(Malformed, match="cannot be told apart: Named"):
        later_keys({"some": [{"name": "a", "later": 1}, {"name": "a"}]}, known, shape)


def a_group(**more: Any) -> Group:
    return Group("oncall", "custom/a", NotificationState(), **more)


def test_a_pause_that_becomes_the_one_that_holds_takes_its_keys_along() -> None:
    long = Paused("ann", "work", AT, None, "*")
    short = Paused("bob", "look", AT, AT.replace(hour=1), "on*")
    group, marks = marked(paused_by(a_group(), [long, short]))
    assert dict(keys(json.loads(unpacked(dump_group(group))))) == marks
    after = paused_by(group, [short])
    assert dict(keys(json.loads(unpacked(dump_group(after)))))[("paused",)] == marks["also_paused", 0]


def test_a_pause_that_replaces_another_has_none_of_its_keys() -> None:
    group, _ = marked(paused_by(a_group(), [Paused("ann", "work", AT, AT.replace(hour=1), "*")]))
    later = Pause(rule="*", by="bob", reason="more", observed_at=AT.replace(hour=2))
    after = commanded(group, later)
    assert after.paused is not None
    assert after.paused.by == "bob"
    assert ("paused",) not in dict(keys(json.loads(unpacked(dump_group(after)))))


def test_an_entry_that_comes_under_the_name_of_one_that_went_has_none_of_its_keys() -> None:
    member = Member(Health.HEALTHY, AT)
    group, _ = marked(a_group(members={"custom/a": member, "custom/b": member}))
    gone = without_gone(replace(group, members={"custom/b": member}))
    back = dump_group(replace(gone, members={"custom/a": member, "custom/b": member}))
    assert [place for place, _ in keys(json.loads(unpacked(back))) if place[:1] == ("members",)] == [
        ("members", "custom/b")
    ]


def test_an_action_that_is_tried_again_keeps_its_keys_when_others_are_done() -> None:
    first, second = (OutboxEntry(ACTIONS[0].model_copy(update={"id": name}), AT) for name in ("a/1", "a/2"))
    group, marks = marked(a_group(outbox=(first, second)))
    after = replace(group, outbox=(replace(second, tries=2),))
    assert dict(keys(json.loads(unpacked(dump_group(after)))))["outbox", 0] == marks["outbox", 1]
