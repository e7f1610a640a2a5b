"""The way back where it does not go by the window of all signals: by some signals, by a trial, or by hand.

A trial is half-open, as a circuit breaker's: it is not known how a primary without traffic does, so it gets a small
part of it when the wait is over, and all of it once what was measured since proves that it is well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.messages import Health, Mode
from rules.core.desired import Evidence
from rules.core.group import updated, with_state
from rules.core.member import Member, Signal
from rules.core.reasons import Held
from rules.core.values import replace
from rules.kinds.traffic import backend_backoff as traffic_backoff
from rules.kinds.traffic.backends import BackendView, detail_of
from rules.kinds.traffic.failback_policy import FailbackMode, Trial
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import BackendStretch, FailoverState, Flap, TrafficGroup, TrialState
from rules.limits.backoff import FAILURES_MAX
from rules.rulefile.readings import Readings

READINGS_MIN = 2
NO_READINGS = Readings(0, 0)


@dataclass(frozen=True, slots=True)
class Way:
    """Progress of the return to the primary."""

    due: bool = False
    """The wait is over, and those whose Healthy is needed say so."""
    since: datetime | None = None
    """Time at which the return became due, or will; None: not known."""
    held: tuple[Held, str] | None = None


def is_away(group: TrafficGroup, service: str) -> Flap | None:
    """Flap of a backend that traffic has left because it was bad, and that has not got it back; None: not so."""
    flap = group.state.failover.flaps.get(service) if group.state.failover is not None else None
    return flap if flap is not None and flap.away else None


def by_trial(rule: TrafficFailover) -> bool:
    """True if traffic returns by a trial. In a dry run traffic never left, so signals are valid without one."""
    return rule.failback.mode is FailbackMode.TRIAL


def speaking(rule: TrafficFailover, member: Member) -> Iterator[tuple[str, Signal]]:
    """The signals whose Unhealthy blocks the way back: the rule's, and those of the way back."""
    for name, signal in member.signals.items():
        if rule.signals is None or name in rule.signals or name in (rule.failback.signals or ()):
            yield name, signal


def bad_signals(rule: TrafficFailover, member: Member) -> list[str]:
    """Those that say that it is bad now."""
    return [name for name, signal in speaking(rule, member) if signal.status is Health.UNHEALTHY]


def way_back(rule: TrafficFailover, primary: BackendView, flap: Flap, now: datetime) -> Way:
    """Give whether the way back is open, by a trial or at once, and why it is not."""
    member, mode = primary.member, rule.failback.mode
    if mode is FailbackMode.MANUAL or member is None or bad_signals(rule, member) or flap.good_since is None:
        return Way()
    names = rule.failback.signals
    at = flap.good_since + traffic_backoff.wait_of(rule, flap.failures)
    if names is None and (mode is not FailbackMode.TRIAL or rule.mode is Mode.DRY_RUN):
        if member.settled is not True or member.status is not Health.HEALTHY:
            return Way(held=_unknown(member, primary))
        at = max(at, member.settled_at or member.since)
    elif names is not None:
        missing = [name for name in names if not _says_healthy(member.signals.get(name), now)]
        if missing:
            return Way(held=(Held.TARGET_UNKNOWN, f"{primary.service}: {', '.join(missing)} does not say Healthy"))
        recovery = rule.window(rule.recovery_seconds)
        at = max(at, *(member.signals[name].begun + recovery for name in names))
    if now < at:
        held = (Held.BACKING_OFF, traffic_backoff.why(primary.service, flap, at)) if flap.failures else None
        return Way(since=at, held=held)
    return Way(due=True, since=at)


def _unknown(member: Member, primary: BackendView) -> tuple[Held, str] | None:
    return (Held.TARGET_UNKNOWN, detail_of(primary)) if member.status is Health.UNKNOWN else None


def _says_healthy(signal: Signal | None, now: datetime) -> bool:
    stale = signal is None or (signal.stale_at is not None and signal.stale_at <= now)
    return not stale and signal is not None and signal.status is Health.HEALTHY


def needs(rule: TrafficFailover, target: str, member: Member, since: datetime) -> tuple[Evidence, ...]:
    """Evidence for a return by signals of its own, or for the begin of a trial.

    A primary whose health is not known without traffic is tried all the same; one that was Healthy must still be.
    """
    names = rule.failback.signals
    if names is not None:
        return (Evidence(target, healthy=True, since=since, signals=len(names), names=names),)
    known = member.status is not Health.UNKNOWN
    return (Evidence(target, healthy=True, since=since),) if known or not by_trial(rule) else ()


# What is taken note of, as it is heard.


def heard(rule: TrafficFailover, group: TrafficGroup, primary: str, target: str, at: datetime) -> TrafficGroup:
    """An observation of the primary has been folded in, made at this moment."""
    flap, member = is_away(group, primary), group.members.get(target)
    if flap is None or member is None or group.state.failover is None:
        return group
    bad = bad_signals(rule, member)
    good_since = None if bad else flap.good_since or at
    seen = traffic_backoff.stretches_of(rule, member)
    if good_since is not None:
        good_since = max([good_since, *_restarts(rule, member, flap, seen)])
    flap = updated(flap, good_since=good_since, seen=seen)
    state = updated(group.state.failover, flaps={**group.state.failover.flaps, primary: flap})
    group = with_state(group, failover=state)
    trial = state.trial
    if trial is None or trial.failed:
        return group
    if bad:
        why = next(signal.detail for name, signal in member.signals.items() if name == bad[0])
        return _failed(group, primary, f"{bad[0]} says Unhealthy ({why})" if why else f"{bad[0]} says Unhealthy", at)
    return with_state(group, failover=replace(state, trial=_read(rule, member, trial, at)))


def _restarts(
    rule: TrafficFailover, member: Member, flap: Flap, seen: Mapping[str, BackendStretch]
) -> Iterator[datetime]:
    """From when on sources have looked again. In a time in which one did not, the primary may have been bad."""
    for name, _ in speaking(rule, member):
        before = flap.seen.get(name)
        if before is not None and (since := before.restarted_at(seen.get(name))) is not None:
            yield since


def _read(rule: TrafficFailover, member: Member, trial: TrialState, at: datetime) -> TrialState:
    """Count the readings made at this moment that count."""
    readings = dict(trial.readings)
    for name, signal in member.signals.items():
        counts = rule.signals is None or name in rule.signals
        if counts and signal.observed_at == at and signal.status is Health.HEALTHY:
            readings[name] = max(readings.get(name, 0) + _one(rule, name, trial, at), _all(rule, name, trial, signal))
    return updated(trial, readings=readings)


def _one(rule: TrafficFailover, name: str, trial: TrialState, at: datetime) -> int:
    return int(at >= _counts_from(rule, name, trial))


def _all(rule: TrafficFailover, name: str, trial: TrialState, signal: Signal) -> int:
    """Number of readings of a source that looks without a break but repeats Healthy only now and then."""
    every = rule.readings.get(name, NO_READINGS).every_seconds
    seconds = (signal.observed_at - max(signal.begun, _counts_from(rule, name, trial))).total_seconds()
    return int(seconds // every) + 1 if every and seconds >= 0 else 0


def _counts_from(rule: TrafficFailover, name: str, trial: TrialState) -> datetime:
    """Earliest time of readings that count: earlier ones may be from before the trial, by the range of a query or by a
    clock that is ahead."""
    return trial.began_at + timedelta(seconds=rule.readings.get(name, NO_READINGS).range_seconds) + rule.skew


def _failed(group: TrafficGroup, primary: str, why: str, at: datetime) -> TrafficGroup:
    state = group.state.failover
    if state is None or state.trial is None:
        return group
    flap = state.flaps[primary]
    good_since = None if flap.good_since is None else at
    flap = replace(flap, failures=min(flap.failures + 1, FAILURES_MAX), good_since=good_since)
    trial = replace(state.trial, failed=why, passed=False)
    return with_state(group, failover=replace(state, flaps={**state.flaps, primary: flap}, trial=trial))


# What time alone changes.


def advance(rule: TrafficFailover, group: TrafficGroup, primary: BackendView, now: datetime) -> TrafficGroup:
    """A trial whose time is over has passed or failed; a signal that fell silent says no longer that it is bad."""
    flap, member, state = is_away(group, primary.service), primary.member, group.state.failover
    if flap is None or member is None or state is None:
        return group
    if flap.good_since is None and not bad_signals(rule, member):
        stale = [signal.stale_at for _, signal in speaking(rule, member) if signal.stale_at is not None]
        good_since = max((at for at in stale if at <= now), default=now)
        flaps = {**state.flaps, primary.service: replace(flap, good_since=good_since)}
        group = with_state(group, failover=(state := replace(state, flaps=flaps)))
    trial = state.trial
    if trial is None or trial.passed or trial.failed or now < ends(rule, trial):
        return group
    if problem := _unproven(rule, member, trial):
        return _failed(group, primary.service, problem, now)
    return with_state(group, failover=replace(state, trial=replace(trial, passed=True)))


def trial_of(rule: TrafficFailover) -> Trial:
    """Trial settings of the rule."""
    return rule.failback.trial


def ends(rule: TrafficFailover, trial: TrialState) -> datetime:
    """End of the trial."""
    return trial.began_at + rule.window(trial_of(rule).seconds)


def _unproven(rule: TrafficFailover, member: Member, trial: TrialState) -> str:
    """Reason why the trial does not prove the backend healthy; empty: it does."""
    if member.status is not Health.HEALTHY:
        return f"it is {member.status} at the end"
    if rule.mode is Mode.DRY_RUN:
        return ""
    failed = [name for name, signal in member.signals.items() if signal.failed and _counting(rule, name)]
    names = failed or [name for name in member.signals if _counting(rule, name)]
    found = [(name, _found(member.signals[name], trial.readings.get(name, 0))) for name in names]
    enough = min(count for _, count in found) if failed else max(count for _, count in found)
    if enough >= READINGS_MIN:
        return ""
    said = ", ".join(f"{name} {count}" for name, count in found)
    return f"{READINGS_MIN} Healthy readings are needed, there were: {said}"


def _counting(rule: TrafficFailover, name: str) -> bool:
    return rule.signals is None or name in rule.signals


def _found(signal: Signal, count: int) -> int:
    """A source that can be asked looks once more before the rest of the traffic follows."""
    return count + 1 if count and signal.source else count


def begun(group: TrafficGroup, at: datetime) -> TrafficGroup:
    """The primary has its percent."""
    state = group.state.failover or FailoverState()
    if state.trial is not None and not state.trial.failed:
        return group  # the others of its tiers have changed
    return with_state(group, failover=replace(state, trial=TrialState(at)))


def over(group: TrafficGroup, primary: str, at: datetime, *, returned: bool) -> TrafficGroup:
    """The trial is over and its result is written; or traffic has come back without one."""
    state = group.state.failover
    if state is None:
        return group
    flap = state.flaps.get(primary)
    flaps = state.flaps
    if returned and flap is not None and flap.away:
        flaps = {**flaps, primary: replace(flap, away=False, returned_at=at)}
    return with_state(group, failover=updated(state, trial=None, flaps=flaps))
