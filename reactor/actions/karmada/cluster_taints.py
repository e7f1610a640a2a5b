"""SetTaints on a Karmada control plane: `spec.taints` of its Cluster objects.

Key and effect are a taint's identity. One that is there keeps its time, also if another writer put it there: the
tolerations count from it. Several rules may want the same one, and a person may have put it there by hand: an
annotation on the object says who holds it, and it is taken off with the last of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from bus.json_text import parsed
from bus.messages import Outcome, SetTaints, Taint
from reactor.actions.annotations import notes_of
from reactor.actions.conditional_write import ConditionalChange, conditional_write_object
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedKube
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.patches import patch
from reactor.actions.workload.marks import follows, refuse_if_stale, stamps
from reactor.actions.workload.reports import Report, enforced, outcome
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError

HOLDERS_ANNOTATION = "reactor/taints"
"""`{"reactor/brownout:NoExecute": ["rule"]}`: the rules that want a taint that we put there or found there."""
SOMEBODY = "*"
"""Holder of the taints that were there before any rule of ours wanted them; no rule is called so."""
API = "/apis/cluster.karmada.io/v1alpha1/clusters"


async def carry_out(
    action: SetTaints, plane: ControlPlane, clock: Clock, context: ExecutionContext | None = None
) -> Outcome:
    """Let the rule's taints on the cluster be exactly these. Outcomes as `bindings.carry_out`; never raises."""
    written: list[str] = []
    error: ReactorError | None = None

    def plan(cluster: JsonObject) -> list[JsonObject] | None:
        refuse_if_stale(cluster, action)
        return difference(cluster, action)

    change = ConditionalChange(
        plan, as_asked=lambda one: difference(one, action) is None, written_by_us=lambda one: follows(one, action)
    )
    try:
        enforced(action)
        api = GuardedKube(await plane.api(), context or ExecutionContext())
        path = f"{API}/{quote(action.cluster, safe='')}"

        async def read() -> tuple[str, JsonObject]:
            return path, await api.get(path)

        if await conditional_write_object(api, f"cluster/{action.cluster}", read, change):
            written.append(f"taints of cluster/{action.cluster}")
    except ReactorError as stopped:
        error = stopped
    return outcome(action, clock, [Report(plane.name, written, error)])


def difference(cluster: JsonObject, action: SetTaints) -> list[JsonObject] | None:
    """Give the JSON Patch that makes the taints so; None: they are."""
    spec = cluster.get("spec") or {}
    have: list[JsonObject] = [*(spec.get("taints") or [])]
    before = holders(cluster)
    held = held_after(before, {*map(_identity, have)}, action)
    # Also what the rule has put there and does not remember: its store was wiped.
    had = {(one.key, one.effect) for one in action.before} | {one for one, who in before.items() if action.rule in who}
    gone = had - held.keys()
    becomes = added(removed(have, gone), action.taints, at=action.decided_at)
    operations: list[JsonObject] = []
    if becomes != have:
        operation = {"op": "replace" if "taints" in spec else "add", "path": "/spec/taints", "value": becomes}
        test = [{"op": "test", "path": "/spec/taints", "value": spec["taints"]}] if "taints" in spec else []
        operations = [*test, operation]
    text = json.dumps({":".join(one): sorted(who) for one, who in held.items()}, sort_keys=True)
    if not operations and held == before:
        return None
    return patch(
        cluster, operations, write={**stamps(action), **({HOLDERS_ANNOTATION: text} if held else {})},
        remove=() if held else (HOLDERS_ANNOTATION,),
    )  # fmt: skip


Identity = tuple[str, str]
"""Key and effect."""


def holders(cluster: JsonObject) -> Mapping[Identity, frozenset[str]]:
    """Read who holds which taint; what a person has edited beyond recognition holds nothing."""
    try:
        noted = parsed(notes_of(cluster).get(HOLDERS_ANNOTATION, "{}"))
    except ValueError:
        return {}
    if not isinstance(noted, dict):
        return {}
    found = {key: who for key, who in noted.items() if isinstance(who, list)}
    return {(key.rpartition(":")[0], key.rpartition(":")[2]): frozenset(map(str, who)) for key, who in found.items()}


def held_after(
    held: Mapping[Identity, frozenset[str]], standing: Iterable[Identity], action: SetTaints
) -> dict[Identity, frozenset[str]]:
    """Give who holds which taint when the rule has what it wants. `standing`: the taints that are there now.

    One without a holder is not among them: it is to be taken off.
    """
    there, wanted = {*standing}, {(one.key, one.effect) for one in action.taints}
    after = {one: who - {action.rule} for one, who in held.items() if one in there}
    for one in wanted:
        found = frozenset({SOMEBODY}) if one in there else frozenset[str]()
        after[one] = after.get(one, found) | {action.rule}
    return {one: who for one, who in after.items() if who}


def added(have: Sequence[JsonObject], want: Iterable[Taint], *, at: datetime) -> list[JsonObject]:
    """Give the taints that are there and, after them, those that are wanted and missing, since `at` or their own
    time."""
    there = {_identity(taint) for taint in have}
    return [*have, *(_taint(one, at) for one in want if (one.key, one.effect) not in there)]


def removed(have: Iterable[JsonObject], identities: Iterable[Identity]) -> list[JsonObject]:
    """Give the taints that are there, without these keys and effects."""
    gone = frozenset(identities)
    return [taint for taint in have if _identity(taint) not in gone]


def _identity(taint: JsonObject) -> Identity:
    return str(taint.get("key")), str(taint.get("effect"))


def _taint(taint: Taint, at: datetime) -> JsonObject:
    since = (taint.time_added or at).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect, "timeAdded": since}
