"""Evacuate: every pod that can move leaves the zone, as fast as disruption budgets allow.

Never by a NoExecute taint: that one ignores disruption budgets (tried on a real controller manager). Pods are never
moved back (GEP-21: no rebalancing). Force is taken only where the rule says so and the time is over, and from nodes
that have been gone for so long that no kubelet there can be asked (machine-controller-manager's rule).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from reactor.actions.zone import zone_nodes
from reactor.actions.zone.evacuation_order import hangs, is_leaving, must_leave, name_of, next_to_leave, uid_of
from reactor.actions.zone.evictions import EvictionResult, delete, evict
from reactor.actions.zone.force import delete_from, give_away
from reactor.actions.zone.isolation_context import CALL_SECONDS, InProgress, IsolationContext, StepResult
from reactor.clients.kubernetes_port import JsonObject, KubeApi

LOOK_SECONDS = 1.0
_NAMED_MAX = 5  # names in one sentence for people


async def evacuate(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Empty the zone's nodes. Raises InProgress with numbers and with what is in the way.

    404 is done; 429 is asked again with the next call, some 11 s later (machine-controller-manager takes 20 s, the
    server names no time); two budgets on one pod are said, and nothing but a person helps.
    """
    answers: dict[str, EvictionResult] = {}  # by uid: each pod is asked once in a call
    ends = isolation.clock.monotonic() + CALL_SECONDS
    while True:
        zone = await zone_nodes.in_zone(api, isolation)
        pods = await pods_on(api, zone)
        if not pods:
            return StepResult(bool(answers), f"no pod that can move is left on {len(zone)} nodes of {isolation.zone}")
        answers |= await _ask(api, isolation, zone, pods, answers)
        await give_away(api, isolation, zone, pods)
        if isolation.clock.monotonic() + LOOK_SECONDS >= ends:
            raise InProgress(_report(isolation, answers, pods))
        await isolation.clock.sleep(LOOK_SECONDS)


async def pods_on(api: KubeApi, zone: Iterable[JsonObject]) -> Sequence[JsonObject]:
    """Give the pods on these nodes that have to leave, whether or not they are on their way out."""

    async def on(node: JsonObject) -> Sequence[JsonObject]:
        return await api.list("/api/v1/pods", field_selector=f"spec.nodeName={zone_nodes.name_of(node)}")

    return [pod for found in await zone_nodes.each(zone, on) for pod in found if must_leave(pod)]


async def _ask(
    api: KubeApi,
    isolation: IsolationContext,
    zone: Sequence[JsonObject],
    pods: Sequence[JsonObject],
    asked: Iterable[str],
) -> Mapping[str, EvictionResult]:
    """Ask the next pods, and give their answers by uid."""
    forced = delete_from(isolation, zone)

    async def ask(pod: JsonObject) -> EvictionResult:
        return await (delete(api, pod) if pod["spec"]["nodeName"] in forced else evict(api, pod))

    now, parallel = isolation.clock.now(), isolation.settings.max_parallel
    chosen = next_to_leave(pods, now, parallel=parallel, asked=asked)
    return dict(zip(map(uid_of, chosen), await zone_nodes.each(chosen, ask), strict=True))


def _report(isolation: IsolationContext, known: Mapping[str, EvictionResult], pods: Sequence[JsonObject]) -> str:
    now = isolation.clock.now()
    leaving = sum(map(is_leaving, pods))
    answers = [known[uid] for uid in map(uid_of, pods) if uid in known]
    blocked = Counter(answer.why for answer in answers if answer.status == "Blocked")
    refused = [answer.why for answer in answers if answer.status == "Refused"]
    words = [f"{len(pods)} pods are left in {isolation.zone}, {leaving} of them on their way out"]
    if hung := [name_of(pod) for pod in pods if hangs(pod, now)]:
        words.append(f"{len(hung)} hang, such as {hung[0]}")
    words += [f"{count} blocked by {why}" for why, count in _most(blocked)]
    words += refused[:_NAMED_MAX]
    if isolation.late:
        over = timedelta(seconds=round((now - isolation.deadline).total_seconds()))
        words.append(f"the time for it has been over for {over}, and the rule says force: {isolation.settings.force}")
    return "; ".join(words)


def _most(counted: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:_NAMED_MAX]
