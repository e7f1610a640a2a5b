"""Pods that leave, and their order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reactor.actions.zone.evacuation_order import hangs, has_volume, is_leaving, must_leave, next_to_leave, uid_of
from tests.unit.actions.builders import START

Pod = dict[str, Any]


def pod(name: str, *, priority: int = 0, volume: bool = False, ends: float | None = None, **metadata: Any) -> Pod:
    """`ends`: seconds from now at which it is to have ended."""
    metadata |= {"deletionTimestamp": (START + timedelta(seconds=ends)).isoformat()} if ends is not None else {}
    source: Pod = {"persistentVolumeClaim": {"claimName": "c"}} if volume else {"emptyDir": {}}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, **metadata},
        "spec": {"priority": priority, "volumes": [{"name": "data"} | source]}, "status": {"phase": "Running"},
    }  # fmt: skip


def names(pods: Any) -> list[str]:
    return [one["metadata"]["name"] for one in pods]


def test_pods_that_cannot_be_moved_stay() -> None:
    daemon = pod("d", ownerReferences=[{"kind": "DaemonSet", "controller": True}])
    mirror = pod("m", annotations={"kubernetes.io/config.mirror": "x"})
    over = pod("o") | {"status": {"phase": "Succeeded"}}
    owned = pod("w", ownerReferences=[{"kind": "ReplicaSet", "controller": True}])
    assert names(filter(must_leave, [daemon, mirror, over, owned, pod("bare")])) == ["w", "bare"]


def test_low_priority_goes_first_and_what_has_no_volume_before_what_has_one() -> None:
    pods = [pod("high", priority=9), pod("low-v", volume=True), pod("low"), pod("lowest", priority=-1)]
    assert names(next_to_leave(pods, START, parallel=9)) == ["lowest", "low", "low-v", "high"]


def test_a_pod_that_hangs_keeps_no_other_back() -> None:
    waits = [pod("v0", volume=True, ends=-60), pod("v1", volume=True)]
    assert names(next_to_leave(waits, START, parallel=1)) == []
    hung = [pod("v0", volume=True, ends=-121), pod("v1", volume=True)]
    assert names(next_to_leave(hung, START, parallel=1)) == ["v1"]


pods_strategy = st.lists(
    st.builds(
        lambda number, priority, volume, ends: pod(f"p{number}", priority=priority, volume=volume, ends=ends),
        st.integers(0, 1000), st.integers(-5, 5), st.booleans(), st.one_of(st.none(), st.integers(-300, 30)),
    ),
    max_size=30, unique_by=uid_of,
)  # fmt: skip


@given(pods_strategy, st.integers(1, 10))
def test_never_more_than_allowed_are_on_their_way_out(pods: list[Pod], parallel: int) -> None:
    chosen = next_to_leave(pods, START, parallel=parallel)
    out = [one for one in pods if is_leaving(one) and not hangs(one, START)]
    assert not any(map(is_leaving, chosen))
    for volume, most in ((False, parallel), (True, 1)):
        before = sum(has_volume(one) is volume for one in out)
        new = sum(has_volume(one) is volume for one in chosen)
        assert new == 0 or before + new <= most


@given(pods_strategy, st.integers(1, 10))
def test_the_pod_that_may_leave_next_does(pods: list[Pod], parallel: int) -> None:
    chosen = next_to_leave(pods, START, parallel=parallel)
    idle = [one for one in pods if not is_leaving(one)]
    if idle and not any(map(is_leaving, pods)):
        assert chosen
    again = next_to_leave(pods, START, parallel=parallel, asked=map(uid_of, chosen))
    assert not set(map(uid_of, again)) & set(map(uid_of, chosen))
