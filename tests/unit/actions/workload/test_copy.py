"""Parts of an object that are copied, and those that stay in its cluster."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reactor.actions.workload.copy import contains, portable, scaled, travels
from reactor.clients.kubernetes_port import JsonObject
from tests.unit.actions.workload.builders import deployment

READ: JsonObject = {
    **deployment(),
    "metadata": {
        "name": "nginx", "namespace": "shop", "uid": "u-1", "resourceVersion": "42", "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "kubectl"}],
        "ownerReferences": [{"uid": "o-1"}], "finalizers": ["x/y"], "selfLink": "/x",
        "labels": {"app": "nginx"},
        "annotations": {
            "team": "shop", "reactor/decision": "r/o/1", "reactor/evicting": "r/o/1",
            "deployment.kubernetes.io/revision": "4", "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
    },
    "status": {"readyReplicas": 3},
}  # fmt: skip

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def test_identity_status_and_ownership_stay_with_the_source_cluster() -> None:
    copy = portable(READ)
    assert copy["metadata"] == {
        "name": "nginx", "namespace": "shop", "labels": {"app": "nginx"}, "annotations": {"team": "shop"}
    }  # fmt: skip
    assert "status" not in copy
    assert copy["spec"] == READ["spec"]


def test_a_copy_shares_nothing_with_what_was_read() -> None:
    before = deepcopy(READ)
    portable(READ)["spec"]["template"]["spec"]["containers"].clear()
    assert before == READ


def _service(**spec: Any) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def test_addresses_and_node_ports_of_a_service_stay() -> None:
    found = _service(
        clusterIP="10.0.0.7", clusterIPs=["10.0.0.7"], healthCheckNodePort=31000, ipFamilies=["IPv4"],
        ports=[{"port": 80, "nodePort": 30080}], selector={"app": "web"},
    )  # fmt: skip
    assert portable(found)["spec"] == {"ports": [{"port": 80}], "selector": {"app": "web"}}


def test_a_headless_service_stays_headless() -> None:
    assert portable(_service(clusterIP="None", clusterIPs=["None"]))["spec"]["clusterIP"] == "None"


def test_a_claim_forgets_its_volume_and_where_its_data_came_from() -> None:
    found = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes", "a": "b"}},
        "spec": {"volumeName": "pv-7", "dataSource": {"name": "s"}, "storageClassName": "fast"},
    }
    copy = portable(found)
    assert (copy["spec"], copy["metadata"]["annotations"]) == ({"storageClassName": "fast"}, {"a": "b"})


def test_a_service_account_leaves_its_tokens_behind() -> None:
    found = {"kind": "ServiceAccount", "metadata": {"name": "web"}, "secrets": [{"name": "web-token"}]}
    assert "secrets" not in portable(found)


def test_a_token_secret_does_not_travel() -> None:
    assert not travels({"kind": "Secret", "type": "kubernetes.io/service-account-token"})
    assert travels({"kind": "Secret", "type": "Opaque"})


def test_a_job_gets_a_selector_of_its_own_in_each_cluster() -> None:
    labels = {"controller-uid": "1", "batch.kubernetes.io/job-name": "j", "app": "x"}
    spec = {"selector": {"matchLabels": {"controller-uid": "1"}}, "template": {"metadata": {"labels": dict(labels)}}}
    copy = portable({"kind": "Job", "metadata": {"name": "j", "labels": labels}, "spec": spec})
    assert copy["metadata"]["labels"] == copy["spec"]["template"]["metadata"]["labels"] == {"app": "x"}
    assert "selector" not in copy["spec"]


def test_a_pod_leaves_its_node_and_its_token_volume_behind() -> None:
    volumes = [{"name": "kube-api-access-x7"}, {"name": "data"}]
    container = {"name": "web", "volumeMounts": [dict(one) for one in volumes]}
    copy = portable({"kind": "Pod", "spec": {"nodeName": "n1", "volumes": volumes, "containers": [container]}})
    assert copy["spec"] == {
        "volumes": [{"name": "data"}], "containers": [{"name": "web", "volumeMounts": [{"name": "data"}]}]
    }  # fmt: skip


def test_only_what_has_replicas_is_scaled() -> None:
    assert scaled(deployment(replicas=3), 5)["spec"]["replicas"] == 5
    assert scaled({"kind": "StatefulSet", "spec": {}}, 2)["spec"]["replicas"] == 2
    config = {"kind": "ConfigMap", "data": {}}
    assert scaled(config, 2) == config


@given(st.dictionaries(st.text(max_size=4), values, max_size=4))
def test_whatever_a_server_answers_can_be_copied(found: JsonObject) -> None:
    assert portable(portable(found)) == portable(found)


@given(values, st.dictionaries(st.text(max_size=4), values, max_size=3))
def test_an_object_contains_itself_and_what_is_less(value: Any, more: JsonObject) -> None:
    assert contains(value, value)
    if isinstance(value, dict):
        assert contains({**more, **value}, value)


def test_what_differs_in_one_leaf_is_not_contained() -> None:
    assert not contains({"a": [{"b": 1}]}, {"a": [{"b": 2}]})
    assert not contains({"a": [1]}, {"a": [1, 2]})
    assert not contains({}, {"a": 1})
