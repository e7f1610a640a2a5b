"""ClusterTaint: a cluster that is bad by any signal gets taints, and loses them when it is good again.

What the taints lead to is the business of the WorkloadFailover rules and their tolerations. Those count from the moment
in which a taint was put on: one that a pause or a guard held back has not been there meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from bus.messages import Action, ClusterTaints, Fact, Health, Mode, Observation, SetTaints, Taint
from rules.core.desired import DesiredState, Evidence, PlannedAction
from rules.core.interests import Interest, observed
from rules.core.kind import (
    RuleKind,
    all_of,
    itself,
    no,
    no_targets,
    none,
    not_asked,
    nothing,
    unchanged,
    whole_state,
    yes,
)
from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.cluster_taint import checks
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.cluster_taint.state import TaintGroup, TaintState
from rules.kinds.cluster_taint.taint_looks import evidence, last_change
from rules.kinds.cluster_taint.taint_premises import premises
from rules.rulefile.feeds import FeedNeed, KarmadaPlane, karmada_inventory
from rules.rulefile.file_kind import FileKind, as_written, needed, tolerated
from rules.rulefile.model import UnknownAs
from rules.rulefile.targets import matches

_SILENT = (Mode.DRY_RUN, Mode.OFF)


def interests(rule: ClusterTaint) -> Iterable[Interest]:
    """Every look at a cluster that matches."""
    yield Interest(observed(rule.match))


def objects(rule: ClusterTaint, fact: Fact) -> Iterable[str]:
    """One group for each cluster that is matched."""
    if isinstance(fact, Observation) and fact.target.startswith("cluster/") and matches(rule.match, fact.target):
        return (fact.target,)
    return ()


def covers(rule: ClusterTaint, object_: str) -> bool:
    """True if the rule still matches this cluster."""
    return matches(rule.match, object_)


def is_in_force(rule: ClusterTaint, cluster: str) -> bool:
    """True if the rule, as it is now, puts taints on this cluster."""
    return rule.mode not in _SILENT and covers(rule, f"cluster/{cluster}")


def takes(rule: ClusterTaint) -> tuple[str, tuple[str, ...]] | None:
    """The clusters, and the signals that it makes taints of; those of all signals are no less the clusters' health."""
    return (rule.match, rule.signals) if rule.signals else None


def advance(rule: ClusterTaint, group: TaintGroup, _shared_group: TaintGroup | None, _now: datetime) -> TaintGroup:
    """While it is off, it has no taints on; those that are on a Karmada object stay there."""
    state = group.state
    if rule.mode is not Mode.OFF or rule.carrier == "Karmada" or state.taints is None:
        return group
    return replace(group, state=replace(state, taints=None))


def desire(rule: ClusterTaint, group: TaintGroup, _shared_group: TaintGroup | None, _now: datetime) -> DesiredState:
    """Give the taints that are to be put on the cluster, or taken off."""
    member, state = group.members.get(group.object), group.state
    if member is None or (rule.signals is not None and not any(name in member.signals for name in rule.signals)):
        return DesiredState()  # an alert that never fired is no reason to worry
    held = None
    waits = member.status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.HOLD
    if waits and (member.window is not None or not member.settled):
        held = (Held.TARGET_UNKNOWN, f"{group.object}: {member.detail or 'Unknown'}")
    if member.settled is None:
        return DesiredState(held=held)
    want = () if member.settled else _timed(rule, state)
    if _is_known_to_have(state, want):
        return DesiredState(held=held)
    fields = {
        "cluster": group.object.partition("/")[2], "taints": want, "before": state.taints or (),
        "carrier": rule.carrier,
    }  # fmt: skip
    detail = f"{group.object} is {member.status}" + (f" ({member.detail})" if member.detail else "")
    since = member.settled_at or member.since
    needs = (Evidence(group.object, healthy=not want, since=since),)
    act = PlannedAction(
        SetTaints, fields, Because.TARGET_CHANGED, detail, concurrency_key="taints", safe=not want, needs=needs
    )
    return DesiredState(acts=(act,), held=held)


def _timed(rule: ClusterTaint, state: TaintState) -> tuple[Taint, ...]:
    """Those that are on keep their time; a new one has none before it is put on."""
    since = {(taint.key, taint.effect): taint.time_added for taint in state.taints or ()}
    return tuple(
        Taint(key=one.key, value=one.value, effect=one.effect, time_added=since.get((one.key, one.effect)))
        for one in rule.taints
    )


def _is_known_to_have(state: TaintState, want: Sequence[Taint]) -> bool:
    """True if these taints are on, and no action that may still have its effect was to write others."""
    contents = [_content(taint) for taint in want]
    known = [state.taints or (), *(() if state.unconfirmed is None else (state.unconfirmed,))]
    return all(contents == [_content(taint) for taint in taints] for taints in known)


def _content(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def requested(
    rule: ClusterTaint, group: TaintGroup, _desired: DesiredState, fresh: Sequence[Action], _now: datetime
) -> TaintGroup:
    """Remember what was asked for: an action that is called off, or whose answer is lost, may have been carried out."""
    asked = [action for action in fresh if isinstance(action, SetTaints) and action.mode is Mode.ENFORCE]
    if not asked or rule.carrier != "Karmada":
        return group
    return replace(group, state=replace(group.state, unconfirmed=asked[-1].taints))


def done(_rule: ClusterTaint, group: TaintGroup, action: Action, _at: datetime) -> TaintGroup:
    """The taints are as asked; the new ones since it was decided, which is the time that Karmada's objects show."""
    if not isinstance(action, SetTaints):
        return group
    since = action.decided_at
    taints = tuple(one if one.time_added else one.model_copy(update={"time_added": since}) for one in action.taints)
    state = group.state
    standing = _standing(state) or () if action.mode is Mode.DRY_RUN else None
    unconfirmed = state.unconfirmed if action.mode is Mode.DRY_RUN else None
    return replace(group, state=replace(state, taints=taints, standing=standing, unconfirmed=unconfirmed))


def _standing(state: TaintState) -> tuple[Taint, ...] | None:
    return state.taints if state.standing is None else state.standing


def reset(rule: ClusterTaint, group: TaintGroup) -> TaintGroup:
    """Forget rehearsed taints: they are on no cluster. Taints that a Karmada object had before stay known."""
    state = group.state
    taints = _standing(state) if rule.carrier == "Karmada" else None
    return replace(group, state=replace(state, taints=taints, standing=None))


def says(
    rule: ClusterTaint, before: TaintGroup, after: TaintGroup, facts: Sequence[Fact], now: datetime
) -> tuple[Fact, ...]:
    """Tell the rules that place workloads: when it changes, and again with each observation, as words can be lost, and
    as what the taints rest on is proven until later."""
    taints = after.state.taints
    if taints is None or rule.mode in _SILENT:
        return ()
    health, looks = evidence(rule, after, now)
    same = taints == before.state.taints and health is evidence(rule, before, now)[0]
    if same and not any(isinstance(fact, Observation) for fact in facts):
        return ()
    if not before.members:  # said again by a new owner: what it says next, by what comes then, is not older
        now = last_change(rule, after) or now
    cluster = after.object.partition("/")[2]
    said = ClusterTaints(cluster=cluster, rule=rule.name, taints=taints, observed_at=now)
    return (said.model_copy(update={"health": health, "looks": looks}) if taints else said,)


def written(_rule: ClusterTaint, action: Action) -> str:
    """Its cluster."""
    return f"cluster/{action.cluster}" if isinstance(action, SetTaints) else ""


KIND: RuleKind[ClusterTaint, TaintState] = RuleKind(
    model=ClusterTaint,
    because=frozenset({Because.TARGET_CHANGED}),
    holds=frozenset({Held.TARGET_UNKNOWN}),
    actions=(SetTaints,),
    implied=nothing,
    state=TaintState,
    resolved=frozenset(),
    interests=interests,
    objects=objects,
    first=nothing,
    creates_group=yes,
    leaves=no,
    everywhere=no,
    subscribed=none,
    subscribing=(),
    subscribes=no_targets,
    owner=itself,
    written=written,
    scope=itself,
    shares_home=no,
    desire=desire,
    forbids=none,
    requested=requested,
    reschedules=no,
    premises=premises,
    tells=False,
    observe=unchanged,
    heard=unchanged,
    advance=advance,
    remembers=no,
    done=done,
    failed=unchanged,
    said=unchanged,
    reset=reset,
    without_dates=whole_state,
    emits=says,
    is_in_force=is_in_force,
    asked=not_asked,
    takes=takes,
    skips_taken=no,
    shared_object=None,
    dependents=all_of,
    selects=covers,
    keeps=no,
    way_back_only=None,
    forget=unchanged,
    as_it_counts=unchanged,
)
"""Registration of ClusterTaint."""


def needs(rule: ClusterTaint) -> Iterator[FeedNeed]:
    """Give the clusters that match."""
    yield FeedNeed(("match",), {rule.match: ("match",)})


FILE_KIND = FileKind(
    model=ClusterTaint,
    plain=as_written,
    beside=as_written,
    checks=checks.rule,
    checks_together=nothing,
    needs=needs,
    consumers=needed(needs),
    inventory=lambda rule: karmada_inventory(rule.carrier),
    reads=lambda rule: [KarmadaPlane()] if rule.carrier == "Karmada" else [],
    lists=no,
    tolerates=tolerated(needs),
    goes_back_at_once=True,
    hints=nothing,
    conflicts=nothing,
    phrases=("taints", "removes the taints of"),
)
"""Registration of ClusterTaint for the loader and the hints."""
