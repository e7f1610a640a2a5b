"""Checker of WorkloadFailover."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from bus.messages import Evict, Health, Place, Purge, Taint, Workload
from rules.core.reasons import Because
from rules.kinds.workload.model import OnGraceExpired, Policy, WorkloadFailover
from rules.kinds.workload.placement import Toleration
from rules.rehearsal.world.checkers.promise_finding import GRACE, Promise, Question, Violation, counts_as_bad, kept
from rules.rehearsal.world.signal_timeline import BAD, GOOD, UNSURE, Statuses, clocked
from rules.rehearsal.world.world_log import Copies, WorldLog
from rules.rulefile.model import UnknownAs
from rules.rulefile.targets import encode_segment

NOT_READY, UNREACHABLE = "cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable"
DEFAULT = 300.0
"""Toleration in seconds where a policy has none (Karmada)."""


@dataclass(frozen=True, slots=True)
class WorkloadCase:
    """One workload under one rule."""

    told: WorldLog
    rule: WorkloadFailover
    object: str
    copies: Copies
    policy: Policy
    now: float

    def target(self, cluster: str) -> str:
        return f"workload/{encode_segment(cluster)}/{self.object}"

    def health(self, cluster: str, towards: Statuses) -> Health | None:
        """Health of a copy by the observations since it was placed; None: none."""
        return self.told.words.now(
            self.target(cluster), self.rule.signals, self.now, towards, self.copies.since.get(cluster, 0.0)
        )


def moved(question: Question) -> Iterator[Violation]:
    """Check that a cluster that is left was bad for the policy's toleration, a chosen one is healthy, and the last copy
    stays."""
    action, told = question.action, question.told
    copies = told.copies.get(action.object)
    if copies is None:
        yield Violation(Promise.BLIND, f"{action.object} was never listed")
        return
    policy = _policy(question.rule, copies)
    if policy is None:
        yield Violation(Promise.BLIND, f"no policy for {action.object} was ever listed")
        return
    case = WorkloadCase(told, question.rule, action.object, copies, policy, question.now)
    leaving = told.leaving.get((action.rule, action.object), {})
    match action:
        case Place():
            for name in action.leaving:
                if not leaving.get(name) and name in copies.since:
                    yield _due(case, name)
            for name in action.clusters.keys() - copies.since.keys():
                target = f"cluster/{encode_segment(name)}"
                status = told.words.now(target, case.rule.signals, case.now, GOOD)
                well = status in (None, Health.HEALTHY)
                yield kept(Promise.BLIND, well, f"{target} gets a copy and is {status}")
        case Evict():
            # A copy that is too many leaves without a failure.
            if not leaving.get(action.from_) and action.because != Because.RECOVERED:
                yield _due(case, action.from_)
            yield from _somewhere_to_go(case, action, leaving)
        case Purge():
            yield _not_the_last(case, action, leaving)
        case _:
            return


def _policy(rule: WorkloadFailover, copies: Copies) -> Policy | None:
    if rule.policies is None:
        return rule
    listed = copies.listed
    if not isinstance(listed, Workload) or listed.policy is None:
        return None
    return Policy.model_validate_json(json.dumps(listed.policy), by_name=False)


# --- when a cluster may be left --------------------------------------------------------------------------------------


def _due(case: WorkloadCase, cluster: str) -> Violation:
    """Check that the workload may leave: by the cluster's own health, by a taint, or by its copy's."""
    reasons = [*_by_cluster(case, cluster), *_by_copy(case, cluster)]
    if any(is_due for is_due, _, _ in reasons):
        return Violation(Promise.EARLY)
    if not any(seconds for _, seconds, _ in reasons):
        return Violation(Promise.BLIND, f"nothing was said of {cluster} for which {case.object} should leave it")
    told = "; ".join(text for _, seconds, text in reasons if seconds)
    return Violation(Promise.EARLY, f"{case.object} leaves {cluster} too early: {told}")


def _by_cluster(case: WorkloadCase, cluster: str) -> Iterator[tuple[bool, float, str]]:
    rule, policy = case.rule, case.policy
    if policy.failover is None or policy.failover.cluster is None:
        return
    target = f"cluster/{encode_segment(cluster)}"
    for statuses, key in ((BAD, NOT_READY), (UNSURE, UNREACHABLE)):
        parts, status = case.told.words.parts(target, rule.signals, case.now, statuses), statuses[0]
        ever = rule.treat_unknown_as is UnknownAs.UNHEALTHY or any(one is not Health.UNKNOWN for _, one in parts)
        seconds = clocked(parts, case.now, statuses, rule.recovery_seconds)
        borne = rule.toleration_seconds + _tolerated_seconds(Taint(key=key, effect="NoExecute"), policy)
        yield seconds >= borne and bool(seconds or parts) and ever, seconds, f"{status} {seconds:g} of {borne:g} s"
    for (_, key, effect), (taint, since) in case.told.taints.get(cluster, {}).items():
        if effect == "NoExecute":
            seconds, borne = max(case.now - since, 0.0), _tolerated_seconds(taint, policy)
            yield case.now >= since and seconds >= borne, seconds, f"{key} {seconds:g} of {borne:g} s"


def _tolerated_seconds(taint: Taint, policy: Policy) -> float:
    """For how long a taint is tolerated, at least: the least of all tolerations that are about it; none: not at all."""
    given: Sequence[Toleration] = policy.placement.cluster_tolerations
    about = [one for one in given if one.effect in ("", taint.effect) and one.key in ("", taint.key)]
    if not about and taint.key in (NOT_READY, UNREACHABLE):
        return DEFAULT
    mine = [one for one in about if one.operator == "Exists" or one.value == taint.value]
    return min((inf if one.toleration_seconds is None else one.toleration_seconds for one in mine), default=0.0)


def _by_copy(case: WorkloadCase, cluster: str) -> Iterator[tuple[bool, float, str]]:
    application = case.policy.failover.application if case.policy.failover is not None else None
    if application is None:
        return
    statuses = (*application.decision_conditions.healthy_state, *counts_as_bad(case.rule)[1:])
    since = case.copies.since.get(cluster, 0.0)
    parts = case.told.words.parts(case.target(cluster), case.rule.signals, case.now, statuses, since)
    seconds = clocked(parts, case.now, statuses, case.rule.recovery_seconds)
    healthy = case.told.words.ever(case.target(cluster), case.rule.signals, Health.HEALTHY, since)
    first = case.told.words.first(case.target(cluster), case.rule.signals, since)
    borne = application.decision_conditions.toleration_seconds
    before = application.pre_conditions
    armed = first is not None and (
        before is None
        or ((before.healthy_state is None or healthy) and case.now - first >= (before.delay_seconds or 0))
    )
    yield bool(seconds or first) and seconds >= borne and armed, seconds, f"the copy bad {seconds:g} of {borne:g} s"


# --- what must stay --------------------------------------------------------------------------------------------------


def _somewhere_to_go(case: WorkloadCase, action: Evict, leaving: dict[str, bool]) -> Iterator[Violation]:
    """Check that a copy that is evicted gracefully has a replacement first."""
    if action.purge_mode == "Directly":
        return
    somewhere = any(name != action.from_ and not leaving.get(name) for name in case.copies.since)
    yield kept(Promise.LAST, somewhere, f"{case.object} has no copy but those that it leaves")


def _not_the_last(case: WorkloadCase, action: Purge, leaving: dict[str, bool]) -> Violation:
    """The old copy goes only when another one is Healthy, or where the rule says so, when it is not Healthy itself.

    One that is asked to leave, and was not evicted, still serves: its cause may have passed a moment ago.
    """
    others = [name for name in case.copies.since if name != action.from_ and not leaving.get(name)]
    healthy = [name for name in others if case.health(name, GOOD) is Health.HEALTHY]
    if healthy:
        return Violation(Promise.LAST)
    failover = case.policy.failover
    modes = [one.on_grace_expired for one in (failover.application, failover.cluster) if one] if failover else []
    may = OnGraceExpired.PURGE in [mode or case.rule.on_grace_expired for mode in modes]
    if may and case.health(action.from_, BAD) is not Health.HEALTHY:
        return Violation(Promise.LAST)
    return Violation(Promise.LAST, f"{case.object} is purged from {action.from_}, and no other copy is Healthy")


# --- what must not be lost -------------------------------------------------------------------------------------------


def unplaced(told: WorldLog, rule: WorkloadFailover, now: float) -> Iterator[Violation]:
    """A workload on a cluster that is bad for too long is asked to leave, or stays with a reason."""
    for object_, copies in told.copies.items():
        policy = _policy(rule, copies)
        if policy is None or not copies.exists or not _means(rule, object_):
            continue
        leaving = told.leaving.setdefault((rule.name, object_), {})
        for name in sorted(copies.since):
            target = f"cluster/{encode_segment(name)}"
            good = told.words.surely(target, rule.signals, now, Health.HEALTHY)
            if good > rule.recovery_seconds + GRACE and leaving.get(name) is False:
                del leaving[name]  # its cause has passed before it was evicted: it stays
            if policy.failover is None or policy.failover.cluster is None:
                continue
            bad = told.words.surely(target, rule.signals, now, Health.UNHEALTHY)
            borne = rule.toleration_seconds + _tolerated_seconds(Taint(key=NOT_READY, effect="NoExecute"), policy)
            known = now - copies.known_at.get(name, now) > GRACE
            if known and min(bad, now - told.clouded) > borne + GRACE:
                lost = name not in leaving and (rule.name, object_) not in told.holds
                what = f"{target} has been bad for {bad:g} s, and {object_} stays there without a word"
                yield Violation(Promise.LOST, what if lost else "", object_)


def _means(rule: WorkloadFailover, object_: str) -> bool:
    *namespace, kind, name = object_.split("/")
    return rule.policies is not None or any(
        one.kind == kind and one.namespace in (None, "".join(namespace)) and one.name in (None, name)
        for one in rule.resource_selectors
    )
