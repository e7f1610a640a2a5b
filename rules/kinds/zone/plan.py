"""The steps of an isolation: their order, how long they may take, what each is told, and how they are undone.

Drained before it is cut, as GEP-21 has it: after the cut kubelets can neither confirm a deletion nor renew a lease, and
pods would hang. Where the control plane has lost the zone already, cut first and force then: a volume is given away
only when its old owner is known to be off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from rules.kinds.zone.admission import Check, checks
from rules.kinds.zone.model import Force, StepName, ZoneIsolation
from rules.kinds.zone.question import AdmissionRequest
from rules.kinds.zone.request import limits_of
from rules.kinds.zone.state import ZoneNodes

PlanMode = Literal["degraded", "dead"]
DARK = timedelta(minutes=5)
"""A node that is NotReady for longer is drained without asking its pods. Source: machine-controller-manager."""
FORCED_SECONDS = 600.0
"""Time that deleting the remaining pods may take after the drain's own time."""
ASKED_AGAIN_SECONDS = 300.0
"""The longest that the engine waits before it asks again, so a step may be over for so long before we know of it."""
BATCHES = 3
"""The first, a share, the rest: with a wait after each but the last."""
ANNOTATION_REMOVED = "AnnotationRemoved"
"""The reason of a step that a carrier does not do because a person has removed the annotation that asked for it."""
RETRIES_MAX = 5
RETRY_FIRST = timedelta(minutes=1)


def mode_of(zone: ZoneNodes | None, now: datetime) -> PlanMode:
    """Mode of the plan: "dead" if none of the zone's nodes has been healthy for more than five minutes, else
    "degraded"."""
    if zone is None or zone.dark_since is None:
        return "degraded"
    return "dead" if now - zone.dark_since > DARK else "degraded"


def in_order(steps: Iterable[str], mode: PlanMode) -> tuple[str, ...]:
    """Give the steps in the order in which they are done."""
    out = list(steps)
    cut, evacuate = StepName.CUT_NETWORK.value, StepName.EVACUATE.value
    if mode == "dead" and cut in out and evacuate in out and out.index(cut) > out.index(evacuate):
        out.remove(cut)
        out.insert(out.index(evacuate), cut)
    return tuple(out)


def leaves_something(rule: ZoneIsolation, step: str) -> bool:
    """True if a step leaves something to undo. Pods are not moved back (GEP-21: a non-goal), and verifying leaves
    nothing. A forced evacuation leaves a taint that says that the nodes are off."""
    if step == StepName.EVACUATE:
        return rule.force is not Force.NEVER
    return step != StepName.VERIFY


def undo_order(rule: ZoneIsolation, touched: Sequence[str]) -> tuple[str, ...]:
    """Give what is to be undone: last first, and before all of it the network, or nothing in the zone could answer."""
    backwards = [step for step in reversed(touched) if leaves_something(rule, step)]
    return tuple(sorted(backwards, key=lambda step: step != StepName.CUT_NETWORK))


def seconds_for(rule: ZoneIsolation, step: str, *, undo: bool) -> float:
    """Seconds that a step may take until the isolation is Failed."""
    seconds = rule.seconds_for(StepName(step))
    if undo and step == StepName.FENCE:
        return seconds + (BATCHES - 1) * rule.failback.batches.bake_seconds + ASKED_AGAIN_SECONDS
    if not undo and step == StepName.EVACUATE and rule.force is Force.AFTER_TIMEOUT:
        return seconds + FORCED_SECONDS
    return seconds


def settings_for(
    rule: ZoneIsolation, zone: str, step: str, *, undo: bool = False, mode: PlanMode, steps: Sequence[str],
    targets: Sequence[str] = (), unproven: bool = False, by: str = "", practice: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Give what the carrier is told about a step. The same in every try: what differs would be another action.

    As JSON has it: a restart reads a stored step back with lists for tuples, and would take it for another one.

    `targets`: of a zone that the rule does not name any more. `unproven`: it comes back although it may be bad. `by`:
    the person who has asked for the isolation. `practice`: it is a drill.

    `timeoutSeconds` of Evacuate is the time in which pods are asked; taking the rest away comes on top of it.
    """
    seconds = seconds_for(rule, step, undo=True) if undo else rule.seconds_for(StepName(step))
    known = rule.zone(zone)
    targets = list(known.targets if known else targets)
    out: dict[str, Any] = {"timeoutSeconds": seconds, "mode": mode}
    if rule.shoot is not None:
        out["shoot"] = rule.shoot.model_dump(mode="json")
    if rule.seed is not None:
        out["seed"] = rule.seed.model_dump(mode="json")
    if step in (StepName.FENCE, StepName.VERIFY) and not undo:
        # Written on each node. Without them it is the rule's own.
        out |= ({"by": by} if by else {}) | ({"practice": True} if practice else {})
    match step:
        case StepName.FENCE:
            out["batches"] = rule.failback.batches.model_dump(mode="json")
            out |= {"unproven": True} if undo and unproven else {}
        case StepName.SHIFT_TRAFFIC:
            out |= {"targets": targets, "drainSeconds": rule.drain_seconds}
        case StepName.EVACUATE:
            out |= {"maxParallel": rule.max_parallel_evictions, "force": rule.force.value}
            # A node is given up only when it is proven to be cut off.
            out["network"] = rule.network.model_dump(mode="json")
        case StepName.CUT_NETWORK:
            out["network"] = rule.network.model_dump(mode="json")
        case StepName.VERIFY:
            out |= {"steps": list(steps), "network": rule.network.model_dump(mode="json")}
            out["healthyShare"] = rule.healthy_share
            out |= {"targets": targets} if targets else {}
            out |= rule.verify.model_dump(mode="json") if rule.verify is not None else {}
    return out


def retry_after(tries: int) -> timedelta | None:
    """Delay before a failed step is tried again: 1, 2, 4, 8, 16 minutes; None: a person has to ask for it."""
    return RETRY_FIRST * 2 ** (tries - 1) if 1 <= tries <= RETRIES_MAX else None


def drain_mode(
    *, not_ready_seconds: float, forced: bool, elapsed_seconds: float, timeout_seconds: float
) -> Literal["evict", "delete"]:
    """Method by which pods leave a node: "evict" asks, "delete" does not. Source: machine-controller-manager."""
    if forced or not_ready_seconds > DARK.total_seconds() or elapsed_seconds > timeout_seconds:
        return "delete"
    return "evict"


@dataclass(frozen=True, slots=True)
class Planned:
    """One step of a plan, for people."""

    step: str
    undo: bool
    timeout_seconds: float
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class IsolationPlan:
    """Steps that an isolation would take, and the result of each guard: what `reactor zone plan` shows."""

    zone: str
    mode: PlanMode
    guards: tuple[Check, ...]
    failover: tuple[Planned, ...]
    failback: tuple[Planned, ...]
    way_back: str = ""
    """By what evidence the zone would come back, for people."""

    @property
    def admitted(self) -> bool:
        """True if it would start: all guards pass."""
        return all(check.passed for check in self.guards)


def plan(rule: ZoneIsolation, request: AdmissionRequest, mode: PlanMode) -> IsolationPlan:
    """Give the whole plan for a zone, both ways."""
    steps = in_order(rule.steps, mode)

    def planned(step: str, *, undo: bool) -> Planned:
        settings = settings_for(rule, request.zone, step, undo=undo, mode=mode, steps=steps)
        return Planned(step, undo, seconds_for(rule, step, undo=undo), settings)

    return IsolationPlan(
        request.zone, mode, tuple(checks(request, limits_of(rule))),
        tuple(planned(step, undo=False) for step in steps),
        tuple(planned(step, undo=True) for step in undo_order(rule, steps)),
    )  # fmt: skip
