"""Causal chain of an action, read from the audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from bus.messages import DecisionRecord, Health, Observation, Outcome
from rules.core.desired import told
from rules.core.reasons import sentence

LINES_MAX = 50
"""Largest number of changes of one target that are shown: the last ones."""


@dataclass(frozen=True, slots=True)
class CausalChain:
    """One action, from what was seen to what became of it. Each list is in order of time, as lines for people."""

    action: Mapping[str, Any]
    observations: tuple[str, ...]
    windows: tuple[str, ...]
    decision: tuple[str, ...]
    guards: tuple[str, ...]
    write: tuple[str, ...]
    outcomes: tuple[str, ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    """Evidence by target: the window, and the observations from its end or later."""
    records: tuple[DecisionRecord, ...] = field(repr=False, default=())


def chain(
    id_: str, records: Sequence[DecisionRecord], seen: Iterable[Observation], outcomes: Iterable[Outcome]
) -> CausalChain | None:
    """Give the chain of an action, from the records of its rule in order; None: no record asks for it."""
    found = next(((record, action) for record, action in _asked(records) if action["id"] == id_), None)
    if found is None:
        return None
    record, action = found
    members = (record.before or {}).get("members") or {}
    targets = {*members, *(str(fact["target"]) for fact in record.facts if fact.get("fact") == "Observation")}
    commands = [f"{fact.get('by')}: {fact['fact']}: {fact.get('reason')}" for fact in record.facts if "by" in fact]
    again = sum(other["id"] == id_ for _, other in _asked(records)) - 1
    write = [f"{action['object']}: generation {action['generation']}, {_does(action)}"]
    if again:
        write.append(f"asked for again {again} times, with the same id")
    return CausalChain(
        action,
        tuple(_changes(seen, targets, record.decided_at)),
        tuple(_windows(members)),
        (f"{_time(record.decided_at)} {action['because']}: {sentence(action['because'])}",
         *([action["detail"]] if action.get("detail") else []), *record.because, *commands),
        tuple(_guards(record, records)),
        tuple(write),
        tuple(_outcome(one) for one in outcomes if one.action == id_),
        tuple(one.model_dump(mode="json", by_alias=True) for one in record.evidence),
        (record,),
    )  # fmt: skip


def _asked(records: Iterable[DecisionRecord]) -> Iterator[tuple[DecisionRecord, Mapping[str, Any]]]:
    return ((record, action) for record in records for action in record.actions)


def _changes(seen: Iterable[Observation], targets: set[str], until: datetime) -> list[str]:
    """Changes of these targets up to `until`: observations that differ from the one before of the same signal, the last
    LINES_MAX."""
    last: dict[tuple[str, str], Health] = {}
    lines = []
    for one in sorted(seen, key=lambda said: said.observed_at):
        key = (one.target, one.signal)
        if one.target in targets and one.observed_at <= until and last.get(key) is not one.status:
            last[key] = one.status
            lines.append(f"{_time(one.observed_at)} {one.target} {one.signal} {one.status}: {one.detail}".rstrip(": "))
    return lines[-LINES_MAX:]


def _windows(members: Mapping[str, Any]) -> Iterator[str]:
    for target, member in sorted(members.items()):
        window = member.get("window")
        settled = {True: "taken as healthy", False: "considered unhealthy", None: "not known yet"}[
            member.get("settled")
        ]
        line = f"{target}: {member['status']} since {_short(member['since'])}, {settled}"
        if window:
            kind = "recovery" if window["healthy"] else "toleration"
            waits = f", waits since {_short(window['waiting_since'])}" if window.get("waiting_since") else ""
            line += f"; {kind} began {_short(window['since'])}{waits}"
        if restart := member.get("restart"):
            unseen = f"no look of {restart['signal']} since {_short(restart['unseen_since'])} shows that it lasted"
            line += f"; restarted {_short(restart['at'])}, as {unseen}"
        yield line


def _guards(record: DecisionRecord, records: Sequence[DecisionRecord]) -> Iterator[str]:
    """Answers of guards and people before the decision, and the holds since the last action."""
    before = record.before or {}
    leave = before.get("grants") or {}
    for guard, asked in sorted((leave.get("asked") or {}).items()):
        answer = {True: "granted", False: "refused", None: "not answered"}[asked.get("granted")]
        yield f"{guard}: {answer} {asked.get('reason', '')} {asked.get('detail', '')}".rstrip()
    request = leave.get("request")
    if request and request.get("approved_at"):
        yield f"approved by {request['by']} at {_short(request['approved_at'])}: {request['reason']}"
    # By their order: what was known grows by steps of one moment, too, where an approval is followed by a fresh look.
    mine = [one for one in takewhile(lambda one: one is not record, records) if one.object == record.object]
    last_act = max((one.decided_at for one in mine if one.actions), default=None)
    mine = [one for one in mine if last_act is None or one.decided_at >= last_act]
    # What an approval took back is in what was known before it only, and the action may come later than that.
    yield from dict.fromkeys(no for one in [*mine, record] for no in _rejections(one))
    for one in mine:
        if one.held:
            yield f"{_time(one.decided_at)} held {one.held}"


def _rejections(record: DecisionRecord) -> Iterator[str]:
    grants = (record.before or {}).get("grants") or {}
    for no in grants.get("rejected") or ():
        yield f"rejected by {no['by']} until {_short(no['until'])}: {no['reason']}"


_PLAIN = {
    "action", "id", "rule", "object", "concurrencyKey", "generation", "mode", "because", "detail", "decidedAt", "epoch",
    "provenAt",
}  # fmt: skip


def _does(action: Mapping[str, Any]) -> str:
    words = (told(key, value) for key, value in action.items() if key not in _PLAIN and value not in ("", None))
    return f"{action['action']} {', '.join(words)}, mode {action['mode']}"


def _outcome(one: Outcome) -> str:
    wrote = "" if one.wrote else ", nothing had to be written"
    return f"{_time(one.observed_at)} {one.status} {one.reason or ''} {one.detail}".rstrip() + wrote


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(moment: str) -> str:
    return _time(datetime.fromisoformat(moment))
