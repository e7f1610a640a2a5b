"""Histories: one JSON event a line, `at` in seconds. Every mistake is told with its line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bus.messages import (
    AnyCommand,
    Approve,
    Cluster,
    Fact,
    FailbackTraffic,
    FailbackZone,
    FailoverTraffic,
    Inventory,
    IsolateZone,
    Observation,
    Outcome,
    Pause,
    Reject,
    ReleaseTraffic,
    Resume,
    RetryZone,
    Route,
    Workload,
    WorkloadCopy,
    Zones,
)
from rules.core.errors import InvalidHistory
from rules.rehearsal.silence import SECONDS_MAX, Silence, with_silences
from rules.rehearsal.timeline import at, second
from rules.rulefile.findings import sentence
from rules.rulefile.targets import BadTarget, check_target

_KINDS = ("observe", "inventory", "command", "outcome", "silence")
Told = TypeVar("Told", bound=BaseModel)
_COMMANDS: dict[str, type[AnyCommand]] = {
    "pause": Pause, "resume": Resume, "approve": Approve, "reject": Reject,
    "isolateZone": IsolateZone, "failbackZone": FailbackZone, "retryZone": RetryZone,
    "failoverTraffic": FailoverTraffic, "failbackTraffic": FailbackTraffic,
    "releaseTraffic": ReleaseTraffic,
}  # fmt: skip
_INVENTORY: dict[str, type[Inventory]] = {
    "route": Route, "zones": Zones, "cluster": Cluster, "workload": Workload, "workloadCopy": WorkloadCopy,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class History:
    """Events of a history file."""

    events: list[tuple[float, Fact]]
    """In the order in which they are heard; those of one instant in the order of the file."""
    until: float
    """The second of the last event; the end of a silence is one. 0 of none."""


def load_history(lines: Iterable[str], file: str) -> History:
    """Read a history. Raises InvalidHistory with every line that cannot be read, up to a hundred."""
    facts: list[tuple[float, Fact]] = []
    silences: list[tuple[float, Silence]] = []
    wrong: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            when, what = _event(line)
        except _BadLine as error:
            wrong.append(f"{file}:{number}: {error}")
            if len(wrong) == 100:
                wrong.append(f"{file}: and perhaps more")
                break
            continue
        if isinstance(what, Silence):
            silences.append((when, what))
        else:
            facts.append((when, what))
    if wrong:
        raise InvalidHistory("\n".join(wrong))
    events = with_silences(sorted(facts, key=lambda event: event[0]), silences)
    ends = [when + silence.seconds for when, silence in silences]
    return History(events, max([*(when for when, _ in events), *ends], default=0.0))


class _BadLine(Exception):
    pass


def _event(line: str) -> tuple[float, Fact | Silence]:
    try:
        value = json.loads(line, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise _BadLine(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _BadLine(f"an event is an object with at and one of {', '.join(_KINDS)}")
    second = value.pop("at", None)
    if not isinstance(second, (int, float)) or isinstance(second, bool) or not 0 <= second <= SECONDS_MAX:
        raise _BadLine(f"at must be a number of seconds from 0 to {SECONDS_MAX}")
    kinds = [key for key in value if key in _KINDS]
    if len(kinds) != 1 or len(value) != 1:
        raise _BadLine(f"an event has at and exactly one of {', '.join(_KINDS)}")
    return float(second), _fact(kinds[0], value[kinds[0]], float(second))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that is given twice has two meanings: JSON's reader would take the last one without a word."""
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _BadLine(f"the key {next(key for key in keys if keys.count(key) > 1)} is given twice")
    return value


def _fact(kind: str, body: Any, second: float) -> Fact | Silence:
    if not isinstance(body, dict):
        raise _BadLine(f"{kind} must be an object")
    match kind:
        case "observe":
            return _observation(_said(body), second)
        case "outcome":
            return _read(Outcome, kind, _said(body), second)
        case "silence":
            return _silence(_said(body), second)
        case "inventory":
            return _inside(_INVENTORY, kind, body, second)
        case _:
            return _inside(_COMMANDS, kind, body, second)


def _read(model: type[Told], where: str, body: dict[str, Any], second: float) -> Told:
    return _valid(model, where, {**body, "observedAt": _seen(where, body, second)})


def _valid(model: type[Told], where: str, body: dict[str, Any]) -> Told:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = [str(part) for part in first["loc"]]
        raise _BadLine(f"{'.'.join([where, *path])}: {sentence(first, path[-1] if path else None, model)}") from error


def _inside(kinds: Mapping[str, type[Told]], kind: str, body: dict[str, Any], second: float) -> Told:
    """Read an event that says inside of what kind it is."""
    if len(body) != 1 or (name := next(iter(body))) not in kinds:
        raise _BadLine(f"{kind}: this version reads {', '.join(kinds)}, not {', '.join(body) or 'nothing'}")
    if not isinstance(body[name], dict):
        raise _BadLine(f"{kind}.{name} must be an object")
    return _read(kinds[name], f"{kind}.{name}", _said(body[name]), second)


def _said(body: dict[str, Any]) -> dict[str, Any]:
    """Give what is said: null is the same as nothing, as in Kubernetes."""
    return {key: value for key, value in body.items() if value is not None}


def _seen(where: str, body: dict[str, Any], second: float) -> datetime:
    """Late news: `observedAt` is the second in which it was seen, `at` the one in which it was heard."""
    seen = body.get("observedAt", second)
    if not isinstance(seen, (int, float)) or isinstance(seen, bool) or not 0 <= seen <= SECONDS_MAX:
        raise _BadLine(f"{where}.observedAt must be a number of seconds")
    return at(float(seen))


def _observation(body: dict[str, Any], second: float) -> Observation:
    if isinstance(target := body.get("target"), str):
        try:
            check_target(target)
        except BadTarget as error:
            raise _BadLine(f"observe.target: {error}") from error
    return _read(Observation, "observe", body, second)


def _silence(body: dict[str, Any], second: float) -> Silence:
    silence = _valid(Silence, "silence", body)
    if second + silence.seconds > SECONDS_MAX:
        raise _BadLine(f"silence.seconds: it must end by second {SECONDS_MAX}")
    return silence


def written(heard: float, fact: Fact) -> str:
    """Give an event as a line that `load_history` reads back as the same, also where a silence has delayed it.

    Raises ValueError for what groups say to each other.
    """
    body = fact.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"observed_at"})
    if (seen := second(fact.observed_at)) != heard:
        body["observedAt"] = seen
    name = next((name for name, kind in {**_COMMANDS, **_INVENTORY}.items() if type(fact) is kind), "")
    match fact:
        case Observation():
            since = {} if fact.since is None else {"since": second(fact.since)}
            event = {"observe": body | since}
        case Outcome():
            event = {"outcome": body}
        case _ if name in _COMMANDS:
            event = {"command": {name: body}}
        case _ if name in _INVENTORY:
            event = {"inventory": {name: body}}
        case _:
            msg = f"{type(fact).__name__} is no event of a history"
            raise ValueError(msg)
    return json.dumps({"at": heard, **event}, ensure_ascii=False)


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text. Not `splitlines`: JSON may hold other line separators as they are.

    A byte order mark before the first is what some editors put there, and says nothing.
    """
    yield from text.removeprefix("\ufeff").split("\n")
