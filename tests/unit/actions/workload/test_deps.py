"""Objects that a workload cannot start without."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.actions.workload.deps import needs
from reactor.clients.kubernetes_port import JsonObject
from tests.unit.actions.workload.builders import NEEDY, deployment


def named(spec: dict[str, Any]) -> list[str]:
    return [need.object for need in needs(deployment(spec=spec))]


def test_every_kind_is_found_once() -> None:
    assert named(NEEDY) == ["ConfigMap/settings", "PersistentVolumeClaim/data", "Secret/key", "ServiceAccount/web"]


@pytest.mark.parametrize(
    "volume",
    [
        {"secret": {"secretName": "s"}},
        {"projected": {"sources": [{"secret": {"name": "s"}}]}},
        {"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}},
        {"cephfs": {"secretRef": {"name": "s"}}},
        {"azureFile": {"secretName": "s"}},
    ],
)
def test_a_secret_is_found_wherever_a_volume_names_it(volume: JsonObject) -> None:
    assert named({"volumes": [{"name": "v", **volume}]}) == ["Secret/s"]


@pytest.mark.parametrize("kind", ["initContainers", "containers", "ephemeralContainers"])
def test_containers_of_all_sorts_are_looked_at(kind: str) -> None:
    container = {"name": "c", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]}
    assert named({kind: [container]}) == ["ConfigMap/m"]


def test_what_is_optional_in_one_place_and_needed_in_another_is_needed() -> None:
    once = {"configMapRef": {"name": "m", "optional": True}}
    [need] = needs(deployment(spec={"containers": [{"name": "c", "envFrom": [once]}]}))
    assert need.optional
    both = [once, {"configMapRef": {"name": "m"}}]
    [need] = needs(deployment(spec={"containers": [{"name": "c", "envFrom": both}]}))
    assert not need.optional


def test_what_every_namespace_has_is_not_copied() -> None:
    spec = {"serviceAccountName": "default", "volumes": [{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]}
    assert named(spec) == []


def test_claims_that_a_stateful_set_makes_itself_are_not_copied() -> None:
    pods = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}], "template": {"spec": pods}}
    assert needs({"kind": "StatefulSet", "spec": spec}) == ()


def test_a_cron_job_is_looked_into() -> None:
    pods = {"spec": {"template": {"spec": {"serviceAccountName": "night"}}}}
    assert [n.object for n in needs({"kind": "CronJob", "spec": {"jobTemplate": pods}})] == ["ServiceAccount/night"]


def test_the_secrets_that_an_account_pulls_images_with_are_optional() -> None:
    [need] = needs({"kind": "ServiceAccount", "imagePullSecrets": [{"name": "registry"}]})
    assert (need.object, need.optional) == ("Secret/registry", True)


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", ""]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["spec", "template", "containers", "volumes", "env", "envFrom", "secret", "name"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["kind", "spec", "metadata", "imagePullSecrets"]), odd, max_size=4))
def test_an_odd_object_breaks_nothing(found: JsonObject) -> None:
    assert needs(found) == tuple(sorted(needs(found)))
