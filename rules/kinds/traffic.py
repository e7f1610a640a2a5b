"""TrafficFailover: what the weights of a route should be. Grown from linkerd-failover, without its two holes.

Primary ready (for recoverySeconds): it takes everything. Primary not ready (for tolerationSeconds) and at least one
secondary ready: the ready secondaries of the lowest tier that has any share the weight. Whoever serves keeps serving
through a dip that is tolerated; whoever does not serve must be healthy now to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bus.messages import Health, RouteRef, SetWeights
from rules.group import Group, Member, RouteState
from rules.kinds.route_state import route_ref
from rules.kinds.shares import divide
from rules.kinds.wish import Act, Evidence, Wish
from rules.language.model import BackendRule, Distribution, OnAllDown, TrafficFailover, UnknownAs
from rules.language.targets import encode_segment
from rules.reasons import Because, Held

NOTHING = Wish()
_HOME = (Because.PRIMARY_HEALTHY, Because.RETURNING, Because.DRIFT)
"""What brings traffic back to a healthy primary, where it belongs: no guard stops that."""
LONG_AGO, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend with all that a decision needs to know of it."""

    service: str
    target: str
    member: Member | None
    weight: int
    """As it stands."""
    share: int
    """When healthy."""
    tier: int

    @property
    def settled(self) -> bool | None:
        return self.member.settled if self.member else None

    @property
    def healthy_now(self) -> bool:
        return self.member is not None and self.member.status is Health.HEALTHY

    @property
    def ready(self) -> bool:
        """May it get traffic? A serving one until its toleration is over; another one only while it is healthy."""
        if self.weight > 0:
            return self.settled is not False
        return self.settled is True and self.healthy_now


def service_target(route: RouteRef, service: str) -> str:
    """`service/<cluster>/<namespace>/<service>`, for `namespace/service` too."""
    namespace, _, name = service.rpartition("/")
    return "/".join(("service", encode_segment(route.cluster), namespace or route.namespace, encode_segment(name)))


def standing(group: Group) -> Mapping[str, int]:
    """The weights as they stand, or in a dry run as they would. A service that stands twice has its larger one."""
    if group.asked is not None:
        return group.asked
    out: dict[str, int] = {}
    for service, weight in group.route.backends if group.route else ():
        out[service] = max(weight, out.get(service, 0))
    return out


def uneven(group: Group, weights: Mapping[str, int]) -> bool:
    """Whether any entry of the route stands otherwise than these weights."""
    if group.asked is not None or group.route is None:
        return dict(standing(group)) != dict(weights)
    return any(weights.get(service, weight) != weight for service, weight in group.route.backends)


def desire(rule: TrafficFailover, group: Group, _around: Group | None, now: datetime) -> Wish:
    """Give the weights that the rule wants now, or why it wants none."""
    ref = route_ref(rule, group.object)
    wish = _weights(rule, group, ref, now)
    if wish.weights is None or not (uneven(group, wish.weights) or _flying(group)):
        return wish
    remember = dict(group.route.healthy) if group.route else {}
    fields = {"route": ref, "weights": dict(wish.weights), "remember": remember}
    needs = tuple(_evidence(rule, group, wish, ref))
    act = Act(SetWeights, fields, wish.because, wish.detail, safe=wish.because in _HOME, needs=needs)
    return replace(wish, acts=(act,))


def _evidence(rule: TrafficFailover, group: Group, wish: Wish, ref: RouteRef) -> Iterator[Evidence]:
    """What is left for being bad has to be bad now, and what gets traffic healthy now.

    What somebody else has written is put right without a question: neither was decided by health.
    """
    if wish.because == Because.DRIFT or wish.weights is None or group.route is None:
        return
    backends = _backends(rule, group, group.route, ref)
    home = _primary_name(rule, group.route, backends)
    for backend in backends:
        member, wanted = backend.member, wish.weights.get(backend.service, 0)
        if member is None:
            continue
        target = backend.target
        if backend.weight > 0 and wanted == 0 and member.settled is False:
            yield Evidence(target, healthy=False, since=member.settled_at or member.since)
        elif wanted > backend.weight == 0 and (backend.healthy_now or wish.because != Because.ALL_DOWN):
            # After a time in which nobody looked at it, what is left has to be seen as late as the first look.
            # What replaces a primary that is bad need not have been good for the recovery, what is returned to need.
            settled_at = member.settled_at if backend.service == home else None
            yield Evidence(target, healthy=True, since=max(settled_at or member.since, member.since))
        elif wanted > backend.weight and group.step is not None and group.step_at is not None:
            # The next step of a gradual return, or all of it: due when the pause of the one that stands is over.
            over = wish.step != group.step and group.step < len(rule.steps)
            pause = timedelta(seconds=rule.steps[group.step].pause_seconds if over else 0)
            yield Evidence(target, healthy=True, since=group.step_at + pause)


def _flying(group: Group) -> bool:
    return any(isinstance(owed.action, SetWeights) for owed in group.owed)


def _weights(rule: TrafficFailover, group: Group, ref: RouteRef, now: datetime) -> Wish:
    route = group.route
    if route is None:
        return NOTHING  # not yet listed: a rule never acts on ignorance
    if not route.exists:
        return Wish(held=(Held.ROUTE_NOT_FOUND, f"{ref.object} does not exist"))
    if route.problem:
        return Wish(held=(Held.ROUTE_UNUSABLE, route.problem))
    backends = _backends(rule, group, route, ref)
    if not backends:
        return NOTHING
    if missing := [backend.service for backend in backends if backend.service not in dict(route.backends)]:
        return Wish(held=(Held.ROUTE_UNUSABLE, f"{ref.object} has no backend {missing[0]}"))
    name = _primary_name(rule, route, backends)
    primary = next((backend for backend in backends if backend.service == name), None)
    if primary is None:
        return _unknown_primary(rule, group, backends, ref, name)
    secondaries = [backend for backend in backends if backend is not primary]
    # What does not serve has to be healthy now to begin, whoever has taken its weight.
    if primary.settled is None or (primary.settled and not primary.weight and not primary.healthy_now):
        return _unsure(rule, primary)
    if primary.settled and (back_at := _back_at(rule, primary)) > now:
        return Wish(look_again=back_at if back_at < NEVER else None)
    if primary.settled:
        wish = _primary_serves(rule, group, primary, secondaries, now)
    else:
        wish = _secondaries_serve(rule, primary, secondaries, route.written)
    if wish.weights is None:
        return wish
    in_order = {backend.service: wish.weights[backend.service] for backend in backends}
    return replace(wish, weights=in_order)


def _backends(rule: TrafficFailover, group: Group, route: RouteState, ref: RouteRef) -> list[Backend]:
    weights = standing(group)
    rules = rule.backends or [BackendRule(service=service) for service in weights]
    out = []
    for backend in rules:
        target = backend.target or service_target(ref, backend.service)
        member = group.members.get(target)
        share = backend.weight if backend.weight is not None else (route.healthy.get(backend.service) or 1)
        out.append(Backend(backend.service, target, member, weights.get(backend.service, 0), share, backend.tier))
    return out


def _primary_name(rule: TrafficFailover, route: RouteState, backends: Sequence[Backend]) -> str:
    if rule.primary is not None:
        return rule.primary
    return route.primary if route.primary is not None else backends[0].service


def _unknown_primary(
    rule: TrafficFailover, group: Group, backends: Sequence[Backend], ref: RouteRef, name: str
) -> Wish:
    """An error, unless linkerd-failover's own behaviour is asked for: there, it is a service like any other."""
    if rule.on_all_down is not OnAllDown.ZERO:
        services = ", ".join(backend.service for backend in backends)
        return Wish(held=(Held.UNKNOWN_PRIMARY, f"{name!r} is none of the backends {services}"))
    outside = group.members.get(service_target(ref, name))
    if outside is not None and outside.settled:
        return Wish({backend.service: 0 for backend in backends}, because=Because.PRIMARY_HEALTHY)
    weights = {backend.service: int(backend.ready) for backend in backends}
    return Wish(weights, because=Because.PRIMARY_UNHEALTHY if any(weights.values()) else Because.ALL_DOWN)


def _unsure(rule: TrafficFailover, primary: Backend) -> Wish:
    """Nothing was ever known for sure of the primary: no action, and a word where nobody knows how it is."""
    return Wish(held=(Held.TARGET_UNKNOWN, _detail(primary))) if _waits(rule, primary) else NOTHING


def _waits(rule: TrafficFailover, backend: Backend) -> bool:
    """Whether nobody knows how it is, and the rule waits for somebody who does."""
    unknown = backend.member is not None and backend.member.status is Health.UNKNOWN
    return unknown and rule.treat_unknown_as is UnknownAs.HOLD


def _back_at(rule: TrafficFailover, primary: Backend) -> datetime:
    """Give the moment from which a primary that does not serve may serve again.

    Its window says so already, unless the bus was wiped: then a primary that is healthy for the first time that we know
    of is taken as healthy at once, and only the weights still tell that it has been bad.
    """
    member = primary.member
    if member is None or primary.weight > 0 or not member.unproven:
        return LONG_AGO
    return member.since + timedelta(seconds=rule.recovery_seconds) if member.status is Health.HEALTHY else NEVER


def _primary_serves(
    rule: TrafficFailover, group: Group, primary: Backend, secondaries: Sequence[Backend], now: datetime
) -> Wish:
    held = None
    if primary.member is not None and primary.member.window is not None and _waits(rule, primary):
        held = (Held.TARGET_UNKNOWN, _detail(primary))
    step, look_again = _step(rule, group, primary, secondaries, now)
    if step is not None:
        weights = _at_percent(rule, rule.steps[step].percent, primary, secondaries)
        detail = f"step {step + 1} of {len(rule.steps)}: {rule.steps[step].percent} %"
        return Wish(weights, because=Because.RETURNING, detail=detail, held=held, step=step, look_again=look_again)
    weights = _everything(rule, primary, secondaries)
    # One that is on its way may have moved traffic already: what calls it back is no answer to somebody else's write.
    away = primary.weight == 0 or group.step is not None or _flying(group)
    return Wish(weights, because=Because.PRIMARY_HEALTHY if away else Because.DRIFT, detail=_detail(primary), held=held)


def _everything(rule: TrafficFailover, primary: Backend, secondaries: Sequence[Backend]) -> dict[str, int]:
    explicit = next((b.weight for b in rule.backends or () if b.service == primary.service), None)
    weight = primary.share if rule.distribution is Distribution.PROPORTIONAL or explicit else 1
    return {primary.service: weight or 1} | {backend.service: 0 for backend in secondaries}


def _step(
    rule: TrafficFailover, group: Group, primary: Backend, secondaries: Sequence[Backend], now: datetime
) -> tuple[int | None, datetime | None]:
    """Give the step of a gradual return that is due, and when the next one is; None: everything, at once."""
    if group.step is None:
        returning = bool(rule.steps) and primary.weight == 0
        return (0, None) if returning and _serving(secondaries) else (None, None)
    if group.step >= len(rule.steps) or not _serving(secondaries):
        return None, None
    if group.step_at is None or not primary.healthy_now:
        return group.step, None  # not carried out yet, or no longer a moment to give it more
    next_at = group.step_at + timedelta(seconds=rule.steps[group.step].pause_seconds)
    if now < next_at:
        return group.step, next_at
    return (group.step + 1, None) if group.step + 1 < len(rule.steps) else (None, None)


def _serving(secondaries: Sequence[Backend]) -> list[Backend]:
    """The ready secondaries of the lowest tier that has any."""
    ready = [backend for backend in secondaries if backend.ready]
    lowest = min((backend.tier for backend in ready), default=None)
    return [backend for backend in ready if backend.tier == lowest]


def _at_percent(
    rule: TrafficFailover, percent: int, primary: Backend, secondaries: Sequence[Backend]
) -> dict[str, int]:
    serving = _serving(secondaries)
    shares = _shares(rule, serving)
    parts = divide(100 - percent, [shares[backend.service] for backend in serving])
    rest = {backend.service: part for backend, part in zip(serving, parts, strict=True)}
    return {primary.service: percent} | {backend.service: rest.get(backend.service, 0) for backend in secondaries}


def _shares(rule: TrafficFailover, serving: Sequence[Backend]) -> dict[str, int]:
    if rule.distribution is Distribution.EQUAL or not any(backend.share for backend in serving):
        return {backend.service: 1 for backend in serving}
    return {backend.service: backend.share for backend in serving}


def _secondaries_serve(
    rule: TrafficFailover, primary: Backend, secondaries: Sequence[Backend], written: Mapping[str, int] | None
) -> Wish:
    serving = _serving(secondaries)
    if not _stays(primary, secondaries) and not any(backend.settled for backend in serving):
        # It may keep what it has though nobody has spoken of it yet, but nothing is moved to it alone.
        serving = _serving([backend for backend in secondaries if backend.settled is not None])
    if not serving:
        # Nobody is left who has been good for long enough: one that is good again now is better than none.
        again = [backend for backend in secondaries if backend.healthy_now]
        lowest = min((backend.tier for backend in again), default=None)
        serving = [backend for backend in again if backend.tier == lowest]
    if not serving:
        return _all_down(rule, primary, secondaries)
    shares = _shares(rule, serving)
    weights = {primary.service: 0} | {backend.service: shares.get(backend.service, 0) for backend in secondaries}
    because = Because.PRIMARY_UNHEALTHY if primary.weight > 0 else Because.SECONDARIES_CHANGED
    if written is not None and dict(written) == weights:
        because = Because.DRIFT  # they stood like this by our own hand, and somebody else has changed them
    # It was bad when it was last heard of, and nobody knows now: until somebody does, the rule cannot go back.
    held = (Held.TARGET_UNKNOWN, _detail(primary)) if _waits(rule, primary) else None
    return Wish(weights, because=because, detail=_detail(primary), held=held)


def _stays(primary: Backend, secondaries: Sequence[Backend]) -> bool:
    """Whether those that serve go on as they are."""
    return primary.weight == 0 and all(backend.settled is not False for backend in secondaries if backend.weight > 0)


def _all_down(rule: TrafficFailover, primary: Backend, secondaries: Sequence[Backend]) -> Wish:
    waiting = [backend for backend in secondaries if backend.settled is not False]
    if rule.on_all_down is OnAllDown.HOLD or waiting:
        detail = ", ".join(_detail(backend) for backend in secondaries) or "there are no secondaries"
        return Wish(held=(Held.NO_HEALTHY_SECONDARY, detail))
    everyone = [primary, *secondaries]
    if rule.on_all_down is OnAllDown.PRIMARY:
        weights = _everything(rule, primary, secondaries)
    elif rule.on_all_down is OnAllDown.SPREAD:
        weights = _shares(rule, everyone)
    else:
        weights = {backend.service: 0 for backend in everyone}
    return Wish(weights, because=Because.ALL_DOWN, detail=f"onAllDown: {rule.on_all_down}")


def _detail(backend: Backend) -> str:
    if backend.member is None:
        return f"{backend.service}: not heard of"
    seen = f" ({backend.member.detail})" if backend.member.detail else ""
    return f"{backend.service}: {backend.member.status}{seen}"
