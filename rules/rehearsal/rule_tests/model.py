"""Model of a rule test file.

The words are promtool's: inputs with values at an interval, and what is expected of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, TypeAdapter, model_validator

from bus.characters import all_seen
from bus.messages import Action, Health, LoadBalancerKind, Mode, RouteKind, check_place
from rules.core.reasons import Because, Held
from rules.kinds.cluster_taint.model import NewTaint
from rules.kinds.workload.model import PurgeMode
from rules.rehearsal.rule_tests.given_workloads import ClusterGiven, WorkloadGiven
from rules.rehearsal.rule_tests.given_zones import Commanded, ZonesGiven
from rules.rulefile.model import API_VERSION, YEAR, ClusterName, KubeName, Model, Name, TargetName

SAMPLES_MAX = 100_000
"""Largest number of values that one input may expand to: a day at one a second, and some."""
FILES_MAX = 1000
_WORDS: Mapping[str, Health | None] = {"_": None} | {health.value: health for health in Health}
_PERCENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?")
Value = TypeVar("Value")
TOP = ("apiVersion", "ruleFiles", "tests")
"""The keys of a test file."""


def samples(values: str) -> list[Health | None]:
    """Give the values one by one; None: nothing is heard. Raises ValueError where a word is none."""
    return _series(values, _status, "a status first, as in `Healthy {}`")


def percents(values: str) -> list[float | None]:
    """Give the percents one by one; None: the source does not say. Raises ValueError where a word is none."""
    return _series(values, _percent, "a percent first, as in `50 {}`")


def _series(text: str, read: Callable[[str], Value | None], first: str) -> list[Value | None]:
    """Give the words one by one; `xN` repeats the one before it, N times in all."""
    out: list[Value | None] = []
    before = ""
    for word in text.split():
        if word[0] == "x" and word[1:].isdecimal() and word.isascii():
            if not before:
                raise ValueError(f"{word} repeats the word before it: write {first.format(word)}")
            if not 1 <= int(word[1:9]) <= SAMPLES_MAX - len(out):
                raise ValueError(f"{before} {word}: from 1 to {SAMPLES_MAX:,} values are taken")
            out += out[-1:] * (int(word[1:]) - 1)
            before = ""
        else:
            out.append(read(word))
            before = word
    return out


def _status(word: str) -> Health | None:
    if word in _WORDS:
        return _WORDS[word]
    near = difflib.get_close_matches(word.capitalize(), _WORDS, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else f"; words are {', '.join(_WORDS)} and xN"
    raise ValueError(f"{word!r} is no value{hint}")


def _percent(word: str) -> float | None:
    if word == "_":
        return None
    if _PERCENT.fullmatch(word) is None or float(word) > 100:
        raise ValueError(f"{word!r} is no percent; words are numbers from 0 to 100, _ and xN")
    return float(word)


def _values(text: str) -> str:
    samples(text)
    return text


def _percents(text: str) -> str:
    percents(text)
    return text


def _text_or_other(value: object) -> str:
    """Tag of a union member, so that a mistake in it is reported once."""
    return "text" if isinstance(value, str) else "other"


Second = Annotated[float, Field(ge=0, le=YEAR)]
ShownText = Annotated[str, StringConstraints(min_length=1, max_length=253), AfterValidator(all_seen)]
"""A name as messages on the bus have it."""


class Input(Model):
    """Observations of one target by one source, at second 0 and then every intervalSeconds."""

    target: TargetName
    values: Annotated[str, StringConstraints(min_length=1, max_length=SAMPLES_MAX), AfterValidator(_values)]
    """`Healthy`, `Unhealthy`, `Unknown`, `_` (no observation), and `xN`: the word before it, N times in all."""
    signal: ShownText = "health"
    """The signal: one of several opinions about the target."""
    stale_seconds: Annotated[float, Field(gt=0, le=YEAR)] | None = None
    """Silence for this long makes the target Unknown. Default: it never does."""
    healthy_percent: (
        Annotated[str, StringConstraints(min_length=1, max_length=SAMPLES_MAX), AfterValidator(_percents)] | None
    ) = None
    """Healthy part of the target in percent, for rules with `overflow`, one for each of the values: numbers from 0 to
    100, `_` (the source does not report it), and `xN`."""

    @model_validator(mode="after")
    def _as_many_percents_as_values(self) -> Self:
        if self.healthy_percent is not None:
            given, wanted = len(percents(self.healthy_percent)), len(samples(self.values))
            if given != wanted:
                raise ValueError(f"healthyPercent has {given} and values has {wanted}: each value needs one")
        return self


class GivenWeight(Model):
    """One backend of a route with its current weight."""

    service: ShownText
    weight: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class RouteGiven(Model):
    """A route with its current weights, or a load balancer: that one has neither cluster nor namespace."""

    cluster: ClusterName | Literal[""] = ""
    kind: RouteKind | LoadBalancerKind
    custom_kind: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = None
    """With the kind Custom: its name."""
    namespace: KubeName | Literal[""] = ""
    name: KubeName
    rule: int | str | None = None
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    backends: tuple[GivenWeight, ...] = ()
    sum_to: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """With the kind Custom: what the weights have to add up to; 0: their ratio counts."""
    all_zero: bool = False
    """With the kind Custom: whether all weights may be zero."""
    exists: bool = True
    life: Annotated[str, StringConstraints(max_length=253)] = ""
    """Of a load balancer that forgets its weights when it starts: another word after each start."""

    @model_validator(mode="after")
    def _has_its_place(self) -> Self:
        check_place(self.kind, cluster=self.cluster, namespace=self.namespace)
        return self


class GivenInventory(Model):
    """Inventory from a second on: exactly one of its kinds."""

    at: Second = 0
    route: RouteGiven | None = None
    zones: ZonesGiven | None = None
    cluster: ClusterGiven | None = None
    workload: WorkloadGiven | None = None
    """Its copies at that time."""


if TYPE_CHECKING:
    ActionName = str
else:
    ActionName = Literal[tuple(one.__name__ for one in get_args(Action))]


class Happening(Model):
    """An action or a hold, by those of its keys that matter to the test."""

    action: ActionName | None = None
    held: Held | None = None
    """A hold with this reason."""
    rule: str | None = None
    object: str | None = None
    weights: Mapping[str, int] | None = None
    """All weights of the action, not some of them."""
    clusters: Mapping[str, int] | None = None
    """Replicas by cluster: the whole placement of the workload."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """The cluster that is left."""
    purge_mode: PurgeMode | None = None
    """Removal of the old copy: `Directly`, `Gracefully`, `Never`."""
    grace_period_seconds: int | None = None
    """The time for which the old copy waits for the new ones."""
    taints: tuple[NewTaint, ...] | None = None
    """All taints of the action."""
    phase: Literal["Failover", "Failback"] | None = None
    status: Literal["Pending", "InProgress", "Aborting", "Done", "Failed"] | None = None
    step: str | None = None
    undo: bool | None = None
    because: Because | Held | None = None
    message: str | None = None
    detail: str | None = None
    mode: Mode | None = None
    id: str | None = None


class Absent(Happening):
    """An event that must not happen. `from` is the cluster that is left, hence `since`."""

    since: Second = 0
    """From this second on, with it."""
    until: Second | None = None
    """Until this second, with it; default: to the end."""


class Expected(Happening):
    """An expected event, by those of its keys that matter to the test. Holds that are not expected are no failure."""

    at: Second | None = None
    """The second in which it happens."""
    absent: Absent | None = None
    """Instead of all other keys: nothing like this happens. Worth saying of holds: an action that is not expected fails
    the test anyhow."""


class OutcomeGiven(Model):
    """Outcome of an action, where it is not Done at once."""

    at: Second
    """The second in which that is known; the action has been asked for by then."""
    action: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(all_seen), Tag("text")]
        | Annotated[Happening, Tag("other")],
        Discriminator(_text_or_other),
    ]
    """Its id, or some of its keys (`{action: Place, object: …}`): the last action that has them."""
    status: Literal["Done", "Failed", "Refused"] = "Done"
    """Failed: it is tried again. Refused: there is a newer decision."""
    reason: Name | None = None
    """In one word: `DisruptionBudget`."""
    detail: Annotated[str, StringConstraints(max_length=1024)] = ""
    """In a sentence."""


class RuleTest(Model):
    """A short history, and what the rules make of it."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    interval_seconds: Annotated[float, Field(ge=0.001, le=YEAR)] = 60
    """The time between two values."""
    inventory: tuple[GivenInventory, ...] = Field(default=(), max_length=1000)
    """Routes that are not in their healthy state, or whose rule reads its backends from them; zones; clusters;
    workloads."""
    commands: tuple[Commanded, ...] = Field(default=(), max_length=1000)
    """Commands that people give."""
    outcomes: Annotated[
        Annotated[Literal["auto", "none"], Tag("text")]
        | Annotated[tuple[OutcomeGiven, ...], Field(max_length=10_000), Tag("other")],
        Discriminator(_text_or_other),
    ] = "auto"
    """Outcomes of the actions of rules that enforce. auto: each is Done at once. none: no outcome arrives. A list: the
    actions that it names wait for it, all others are Done at once."""
    inputs: tuple[Input, ...] = Field(default=(), max_length=1000)
    expect: tuple[Expected, ...] = Field(max_length=10_000)
    """All actions, in order, and those holds that matter. Empty: nothing is done."""


@cache
def adapter() -> TypeAdapter[RuleTest]:
    """Reads one test."""
    return TypeAdapter(RuleTest)


def schema() -> dict[str, Any]:
    """The JSON Schema of a rule test file, for editors."""
    part = adapter().json_schema(ref_template="#/$defs/{model}")
    definitions = part.pop("$defs", {})
    files = {"type": "array", "minItems": 1, "maxItems": FILES_MAX, "items": {"type": "string", "minLength": 1}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "alert-reactor rule test file",
        "type": "object", "required": list(TOP), "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": API_VERSION}, "ruleFiles": files,
            "tests": {"type": "array", "minItems": 1, "items": part},
        },
        "$defs": dict(sorted(definitions.items())),
    }  # fmt: skip
