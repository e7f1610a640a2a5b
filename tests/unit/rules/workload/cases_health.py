"""Cases about cluster health, taints and eviction rates, applied to our functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bus.messages import Health, Taint
from reactor.actions.karmada.cluster_taints import removed
from rules.kinds.cluster_health import HealthSample, damped, heartbeat, probe_reading
from rules.kinds.workload.tolerations import added, system_taint
from rules.limits.rates import PeerHealth, RateBucket, disrupted, rate
from rules.rehearsal.simulation import at
from rules.rulefile.guards import Disruption, Guards

Case = dict[str, Any]
NOW = at(100_000)
READY = {"True": Health.HEALTHY, "False": Health.UNHEALTHY, "Unknown": Health.UNKNOWN}


def ready(word: str | None) -> Health | None:
    return None if word is None else READY[word]


def cluster_ready_threshold(case: Case) -> None:
    cache = case["cache"]
    before = HealthSample(READY[cache["last"]], cache["since_s"]) if cache is not None else None
    status, _ = damped(
        READY[case["observed"]], before, ready(case["current"]), 0,
        failure_seconds=case["failure_s"], success_seconds=case["success_s"],
    )  # fmt: skip
    assert status is READY[case["expect"]]


def cluster_probe_reading(case: Case) -> None:
    def status(answer: object) -> int | None:
        return answer if isinstance(answer, int) else None

    assert probe_reading(status(case["readyz"]), status(case["healthz"]))._asdict() == case["expect"]


def cluster_monitor(case: Case) -> None:
    status = heartbeat(
        ready(case["ready"]), first_seen=case["created_s"], last_beat=case["last_heartbeat_s"], now=0,
        grace_seconds=case["grace_s"], startup_grace_seconds=case["startup_grace_s"],
    )  # fmt: skip
    assert status is ready(case["expect"])


def system_taints_by_ready(case: Case) -> None:
    key = system_taint(ready(case["ready"]))
    assert ([] if key is None else [key.removeprefix("cluster.karmada.io/")]) == case["expect"]


def taint_set_ops(case: Case) -> None:
    have, want = _taints(case["have"]), _taints(case["want"])
    if case["op"] == "add":
        got = [
            {
                "key": one.key, "effect": one.effect,
                "added_s": (one.time_added - NOW).total_seconds() if one.time_added else None,
            }
            for one in added(have, want, NOW)
        ]  # fmt: skip
        assert got == case["expect"]
    else:
        assert removed(case["have"], [(one.key, one.effect) for one in want]) == case["expect"]


def _taints(given: list[Case]) -> list[Taint]:
    return [
        Taint(
            key=one["key"], effect=one["effect"],
            time_added=NOW + timedelta(seconds=one["added_s"]) if one.get("added_s") is not None else None,
        )
        for one in given
    ]  # fmt: skip


def eviction_rate_delay(case: Case) -> None:
    due = RateBucket().taken(NOW).due(case["rate"])
    assert due is not None
    assert abs((due - NOW).total_seconds() - case["expect_s"]) <= 0.001


def eviction_rate_throughput(case: Case) -> None:
    bucket, now, count = RateBucket(), NOW, 0
    end = NOW + timedelta(seconds=case["window_s"])
    while now < end:
        bucket, count = bucket.filled(case["rate"], now).taken(now), count + 1
        now = bucket.due(case["rate"]) or end
    assert case["expect"]["min"] <= count <= case["expect"]["max"]


def guards(threshold: float, secondary: float = 0.01, large: int = 50, normal: float = 0.1) -> Guards:
    disruption = Disruption(
        unhealthy_at=f"{threshold * 100:g}%", secondary_rate_per_second=secondary, large_size=large
    )  # fmt: skip
    return Guards(rate_per_second=normal, disruption=disruption)


def zone_disruption_state(case: Case) -> None:
    peers = PeerHealth(case["ready"] + case["not_ready"], case["not_ready"])
    words = {"Normal": "normal", "PartialDisruption": "partial", "FullDisruption": "full"}
    assert words[disrupted(guards(case["threshold"]), peers)] == case["expect"]


def zone_disruption_rate(case: Case) -> None:
    bad = {"normal": 0, "partial": case["size"] - 1, "full": case["size"]}[case["state"]]
    limits = guards(0.55, case["secondary"], case["large"], case["normal"])
    assert rate(limits, PeerHealth(case["size"], bad)) == case["expect"]


CHECKS: dict[str, Callable[[Case], None]] = {
    "cluster_ready_threshold": cluster_ready_threshold,
    "cluster_probe_reading": cluster_probe_reading,
    "cluster_monitor": cluster_monitor,
    "system_taints_by_ready": system_taints_by_ready,
    "taint_set_ops": taint_set_ops,
    "eviction_rate_delay": eviction_rate_delay,
    "eviction_rate_throughput": eviction_rate_throughput,
    "zone_disruption_state_k8s": zone_disruption_state,
    "zone_disruption_rate_k8s": zone_disruption_rate,
}
