"""First part of the windows: what the signals of one member say together, and since when.

A word of a signal goes on from the one before it where the source has seen the same status all the time. Where no look
bridges the time between them, the status is known only since the first look after it: whatever was measured before may
have ended and begun again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.member import Member, Signal
from rules.core.reader import Reader
from rules.core.values import replace
from rules.rulefile.model import Rule, UnknownAs


def counting(member: Member, rule: Rule, names: Sequence[str] | None = None) -> Collection[Signal]:
    """The signals that the rule uses, or those of these names."""
    names = rule.signals if names is None else names
    if names is None:
        return member.signals.values()
    return [signal for name, signal in member.signals.items() if name in names]


def combined(member: Member, rule: Rule, at: datetime) -> Health | None:
    """Give the worst of the signals that count at this moment: Unhealthy, then Unknown, then Healthy.

    None: none of them was ever heard. Unknown from a resolved alert is settled by the Healthy of a signal that was
    Unhealthy in the same episode.
    """
    healthy = unknown = resolved = recovered = False
    for signal in counting(member, rule):
        stale = signal.stale_at is not None and signal.stale_at <= at
        if signal.status is Health.UNKNOWN or stale:
            resolved |= signal.resolved and not stale
            unknown |= stale or not signal.resolved
        elif signal.status is Health.UNHEALTHY:
            return Health.UNHEALTHY
        else:
            healthy = True
            recovered |= signal.failed
    if unknown or (resolved and not recovered):
        return Health.UNKNOWN
    return Health.HEALTHY if healthy else None


def unknown_from(member: Member, rule: Rule, at: datetime) -> datetime | None:
    """Since when the signals together say Unknown; None: they did so at this moment already."""
    said = [one for one in counting(member, rule) if one.begun <= at]
    if not said or any(one.status is not Health.HEALTHY for one in said):
        return None
    return min((one.begun for one in counting(member, rule) if one.begun > at), default=None)


def is_bad(rule: Rule, status: Health) -> bool:
    """True if the rule considers this status bad: Unhealthy, or Unknown with `treatUnknownAs: Unhealthy`."""
    return status is Health.UNHEALTHY or (status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY)


def goes_on(last: Signal, new: Signal) -> bool:
    """True if the status lasted without a break from `last` to `new`; assumed where the source does not report since
    when."""
    if (last.status_before or last.status) is not new.status:
        return False
    if new.since is None:
        return last.status is new.status and (last.stale_at is None or last.stale_at >= new.observed_at)
    if new.version and new.version == last.version:
        return True
    before = new.since - timedelta(seconds=new.resolution_seconds)
    # The last status of a source that cannot be asked counts for some time; one that then says since when ends that.
    return last.proves(before) and (bool(new.source) or before <= last.observed_at)


def joined(last: Signal | None, new: Signal) -> Signal:
    """Give the new word with the moment since when its status has been seen without a break."""
    failed = new.status is Health.UNHEALTHY or (last is not None and last.failed)
    if last is None:
        return replace(new, since=new.begun, failed=failed)
    if not goes_on(last, new):
        # The source may not have known what it said itself in between: never earlier than another status of its own,
        # as far as it had seen that. One that is itself told says again what it was told before an outage of the bus.
        same = (last.status_before or last.status) is new.status and new.since is not None
        known_until = min(last.observed_at, last.lasts_until)
        return replace(new, since=new.begun if same else max(new.begun, known_until), failed=failed)
    if new.proven_until is not None and (last.proven_until is None or last.proven_until > new.proven_until):
        new = replace(new, valid_until=last.proven_until)  # said by another process, that saw it later
    return replace(new, since=last.begun, failed=failed)


def begun(member: Member, rule: Rule, status: Health, at: datetime) -> datetime:
    """Since when the signals together have said so: one is enough for bad, and all are needed for healthy."""
    saying = [one for one in counting(member, rule) if status is Health.HEALTHY or one.status is status]
    if status is Health.UNKNOWN or not saying:
        return at
    if status is Health.HEALTHY:
        return max(one.begun for one in saying)
    return stretch(saying)[0]


def stretch(saying: Sequence[Signal]) -> tuple[datetime, datetime]:
    """Since when and until when these signals show the same, one after the other and without a gap.

    It is the stretch of the one that was heard last. Another one counts from before its begin only if it still proves
    its status there.
    """
    if len(saying) == 1:
        return saying[0].begun, saying[0].lasts_until
    last = max(saying, key=lambda one: one.observed_at)
    since, until = last.begun, last.lasts_until
    for one in sorted(saying, key=lambda one: one.begun, reverse=True):
        if one.proves(since) and one.begun <= until:
            since, until = min(since, one.begun), max(until, one.lasts_until)
    return since, until


def unhealthy(member: Member, rule: Rule) -> list[Signal]:
    """The signals that count and say that it is Unhealthy."""
    return [one for one in counting(member, rule) if one.status is Health.UNHEALTHY]


def bridged(member: Member, rule: Rule, last: Signal, new: Signal) -> bool:
    """True if another signal was Unhealthy during the whole gap between `last` and `new`."""
    others = (one for one in counting(member, rule) if one is not new and one.status is Health.UNHEALTHY)
    return any(last.proves(one.begun) and one.proves(new.begun) for one in others)


def proven(
    member: Member, rule: Rule, moment: datetime, *, healthy: bool, signals: int = 1,
    names: Sequence[str] | None = None, unknown: bool = False, seen: datetime | None = None,
) -> bool:  # fmt: skip
    """True if at least `signals` signals confirm the status at `moment` or later, by looks that ended at `seen` or
    later.

    For bad, any signals count. For healthy, all that were Unhealthy in this episode have to be among them. `unknown`:
    Unknown counts as bad, whatever the rule says.
    """

    def proves(one: Signal) -> bool:
        return one.proves(moment) and (seen is None or one.is_seen(seen))

    saying = _saying(member, rule, names, healthy=healthy, unknown=unknown)
    if sum(proves(one) for one in saying) < signals:
        return False
    return not healthy or all(proves(one) for one in saying if one.failed)


SILENT_SECONDS = 15.0
"""A source that was asked for so long, and has not answered, is silent: where Unknown counts as bad, so does that."""


def silence_proven(member: Member, rule: Rule, moment: datetime, reader: Reader) -> datetime | None:
    """Give when the member counts as bad at this moment by silence alone, of sources that were asked.

    None: it does not, unless something changes.
    """
    if member.status is not Health.UNKNOWN or not is_bad(rule, Health.UNKNOWN):
        return None
    silent = [one for one in counting(member, rule) if one.source and one.status_before is not None]
    since = max((one.stale_at or one.observed_at for one in silent), default=None)
    return None if since is None else max(moment, reader.asked_until(since, SILENT_SECONDS))


def proofs(
    member: Member, rule: Rule, names: Sequence[str] | None = None, *, healthy: bool, unknown: bool = False
) -> list[datetime]:  # fmt: skip
    """End times of the looks by which signals prove that the member is healthy or bad, without the signals that prove
    it until they are stale."""
    saying = _saying(member, rule, names, healthy=healthy, unknown=unknown)
    return [one.seen_until for one in saying if one.seen_until is not None]


def _saying(
    member: Member, rule: Rule, names: Sequence[str] | None, *, healthy: bool, unknown: bool
) -> list[Signal]:  # fmt: skip
    if healthy:
        return [one for one in counting(member, rule, names) if one.status is Health.HEALTHY]
    if member.status is Health.UNKNOWN and not (unknown or is_bad(rule, Health.UNKNOWN)):
        return []  # it may be well
    status = Health.UNHEALTHY if member.status is Health.UNHEALTHY else Health.UNKNOWN
    return [one for one in counting(member, rule, names) if _says(one, status)]


def _says(signal: Signal, status: Health) -> bool:
    if signal.status is not status:
        return False
    # Silence may only be that the source is not heard: where it can be asked, it proves nothing.
    return signal.status_before is None or not signal.source
