"""Settings of Karmada that conflict with ours."""

from __future__ import annotations

import pytest

from reactor.actions.karmada.binding import name_of
from reactor.actions.karmada.switches import fights
from reactor.clients.kubernetes_port import JsonObject
from tests.unit.actions.workload.builders import NGINX


def manager(*args: str, image: str = "karmada-controller-manager:v1.15.0") -> JsonObject:
    container = {"image": image, "command": ["/bin/karmada-controller-manager", *args]}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("args", "switches"),
    [
        ([], []),
        (["--feature-gates=Failover=false"], []),
        (["--feature-gates=PropagateDeps=true,Failover=true"], ["Failover"]),
        (["--feature-gates", "Failover=true"], ["Failover"]),
        (["--enable-no-execute-taint-eviction=true"], ["enable-no-execute-taint-eviction"]),
        (["--enable-no-execute-taint-eviction"], ["enable-no-execute-taint-eviction"]),
        (["--enable-no-execute-taint-eviction=false", "--v=4"], []),
        (["--allow-no-execute-taint-policy=true"], ["allow-no-execute-taint-policy"]),
        (["--feature-gates=GracefulEviction=false"], ["GracefulEviction"]),
        (["--feature-gates=AllAlpha=true,AllBeta=true"], ["Failover"]),
        (["--feature-gates=AllBeta=true,Failover=false"], []),
        (["--feature-gates=Failover=false,AllBeta=true"], []),
        (["--feature-gates=AllBeta=false"], ["GracefulEviction"]),
        (["--feature-gates=Failover=True"], ["Failover"]),
        (["--feature-gates=Failover=1"], ["Failover"]),
        (["--feature-gates= PropagateDeps=true, Failover = t"], ["Failover"]),
        (["--feature-gates=Failover=true", "--feature-gates=PropagateDeps=true"], ["Failover"]),
        (["--feature-gates=Failover=true", "--feature-gates=Failover=false"], []),
        (["--feature_gates=Failover=true"], ["Failover"]),
        (["--feature-gates", "AllBeta=true", "--v=4"], ["Failover"]),
        (["-c", "exec karmada-controller-manager --v=2 --feature-gates=Failover=true"], ["Failover"]),
        (["--feature-gates=failover=true"], []),
        # A second word on all gates of a stage changes none that the first has switched.
        (["--feature-gates=AllBeta=true", "--feature-gates=AllBeta=false"], ["Failover"]),
        (["--feature-gates=AllBeta=false", "--feature-gates=AllBeta=true"], ["GracefulEviction"]),
        (["--feature-gates=AllBeta=false,AllBeta=true"], ["Failover"]),
        (["--feature-gates", "AllBeta=true", "--feature-gates", "Failover=false"], []),
        (["--", "--feature-gates=Failover=true"], []),
    ],
)
def test_every_switch_that_is_on_is_named(args: list[str], switches: list[str]) -> None:
    assert [found.switch for found in fights(manager(*args))] == switches


def test_a_switch_in_a_variable_of_the_container_is_read() -> None:
    found = manager("--feature-gates=$(GATES),PropagateDeps=true", "--enable-no-execute-taint-eviction=$(EVICT)")
    [container] = found["spec"]["template"]["spec"]["containers"]
    container["env"] = [
        {"name": "STAGE", "value": "Failover"}, {"name": "GATES", "value": "$(STAGE)=true"},
        {"name": "EVICT", "valueFrom": {"configMapKeyRef": {"name": "karmada", "key": "evict"}}},
    ]  # fmt: skip
    assert [one.switch for one in fights(found)] == ["Failover"]
    container["command"] += ["--feature-gates=$$(GATES)"]  # escaped: no reference
    container["env"][1]["value"] = "Failover=false"
    assert not [*fights(found)]


@pytest.mark.parametrize(
    ("image", "on"),
    [
        ("docker.io/karmada/karmada-controller-manager:v1.6.2", True),
        ("karmada-controller-manager:v1.12.0", False),
        ("registry.invalid:5000/karmada-controller-manager:v1.8.0@sha256:ab", True),
        ("karmada-controller-manager:latest", False),
        ("registry.invalid:5000/karmada-controller-manager", False),
    ],
)
def test_old_releases_fail_over_unless_they_are_told_not_to(image: str, *, on: bool) -> None:
    assert bool([*fights(manager(image=image))]) is on
    assert not [*fights(manager("--feature-gates=Failover=false", image=image))]


def test_what_a_fight_says_tells_what_to_do() -> None:
    [found] = fights(manager("--feature-gates=Failover=true"))
    assert "--feature-gates=Failover=false" in str(found)


def test_a_binding_is_called_as_karmada_calls_it() -> None:
    assert name_of(NGINX) == "nginx-deployment"
    role = NGINX.model_copy(update={"kind": "ClusterRole", "name": "system:node", "namespace": ""})
    assert name_of(role) == "system.node-clusterrole"
