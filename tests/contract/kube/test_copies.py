"""A copy of what a cluster has is taken by another, and again without a change: of each kind that rules may name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactor.actions.workload.copy import contains, portable
from reactor.clients.kubernetes_api import connect
from reactor.settings.server_settings import ClusterSettings
from tests.contract.kube.objects import deployment
from tests.contract.kube.test_carriers import reached
from tests.kube.api import Api

POD = deployment("web")["spec"]["template"]
ONCE = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never", "schedulerName": "nobody"}}
WEB = {"matchLabels": {"app": "web"}}
ROLLING = {"rollingUpdate": {"maxSurge": "30%"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SERVED = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}
RICH = {
    "serviceAccountName": "web", "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "securityContext": {"runAsNonRoot": True}, "nodeSelector": {"disk": "fast"},
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "emptyDir": {}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}},
    ],
    "initContainers": [{"name": "first", "image": "registry.invalid/first:1"}],
    "containers": [
        {
            "name": "web", "image": "registry.invalid/web:1", "ports": [{"containerPort": 80}, {"containerPort": 81}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": "1000m"}},
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "tmp", "mountPath": "/scratch"}],
            "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
        }
    ],
}  # fmt: skip
KINDS: dict[str, tuple[str, str, Any]] = {
    "Deployment": ("deployments", "apps/v1", {"spec": deployment("web")["spec"]}),
    "Deployment with much in it": (
        "deployments", "apps/v1",
        {"spec": {"selector": WEB, "template": {**POD, "spec": RICH}, "strategy": ROLLING}},
    ),
    "StatefulSet": (
        "statefulsets", "apps/v1",
        {
            "spec": {
                "serviceName": "web", "selector": WEB, "template": POD, "replicas": 0,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
            }
        },
    ),
    "DaemonSet": (
        "daemonsets", "apps/v1",
        {"spec": {"selector": WEB, "template": {**POD, "spec": {**POD["spec"], "nodeSelector": {"no": "where"}}}}},
    ),
    "ReplicaSet": ("replicasets", "apps/v1", {"spec": {"selector": WEB, "template": POD, "replicas": 0}}),
    "Job": ("jobs", "batch/v1", {"spec": {"template": ONCE, "suspend": True}}),
    "CronJob": (
        "cronjobs", "batch/v1", {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": ONCE}}}}
    ),
    "Pod": (
        "pods", "v1",
        {"metadata": {"labels": {"app": "web"}}, "spec": {**POD["spec"], "schedulerName": "nobody"}},
    ),
    "Service": ("services", "v1", {"spec": {**SERVED}}),
    "headless Service": ("services", "v1", {"spec": {"clusterIP": "None", **SERVED}}),
    "Service on node ports": ("services", "v1", {"spec": {"type": "NodePort", **SERVED}}),
    "Service with a load balancer": (
        "services", "v1",
        {"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", **SERVED}},
    ),
    "Service of another name": ("services", "v1", {"spec": {"type": "ExternalName", "externalName": "shop.invalid"}}),
    "Ingress": (
        "ingresses", "networking.k8s.io/v1",
        {"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}},
    ),
    "ConfigMap": ("configmaps", "v1", {"data": {"a": "1"}, "binaryData": {"b": "AAE="}, "immutable": True}),
    "Secret": ("secrets", "v1", {"type": "Opaque", "stringData": {"a": "1"}}),
    "ServiceAccount": ("serviceaccounts", "v1", {"imagePullSecrets": [{"name": "pull"}]}),
    "PersistentVolumeClaim": ("persistentvolumeclaims", "v1", {"spec": CLAIM}),
    "PodDisruptionBudget": (
        "poddisruptionbudgets", "policy/v1", {"spec": {"maxUnavailable": "30%", "selector": WEB}}
    ),
    "HorizontalPodAutoscaler": (
        "horizontalpodautoscalers", "autoscaling/v2",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", KINDS)
async def test_a_copy_is_taken_elsewhere_and_again_nothing_has_to_change(kube: Api, tmp_path: Path, what: str) -> None:
    plural, version, body = KINDS[what]
    kind = what.removeprefix("headless ").partition(" ")[0]
    elsewhere, group = f"{kube.namespace}-other", version if "/" in version else ""
    await kube.post("/api/v1/namespaces", {"metadata": {"name": elsewhere}})
    source = {"apiVersion": version, "kind": kind, **body}
    source["metadata"] = {"name": "web", "annotations": {"team": "shop"}, **body.get("metadata", {})}
    made = await kube.post(kube.path(plural, group=group), source)
    if kube.server.sim is not None and made.code == 404:
        pytest.skip(f"the emulator serves no {plural}")
    assert made.code == 201, made.body
    api = await connect("it", ClusterSettings(kubeconfig=reached(kube.server, tmp_path)))
    try:
        home = kube.path(plural, "web", group)
        away = home.replace(f"/{kube.namespace}/", f"/{elsewhere}/")
        copy = portable(await api.get(home))
        copy["metadata"]["namespace"] = elsewhere
        first = await api.apply(away, copy)
        assert contains(first, copy)
        again = portable(await api.get(home))
        again["metadata"]["namespace"] = elsewhere
        live = await api.get(away)
        assert contains(live, again)
        second = await api.apply(away, again)
        assert second["metadata"].get("generation") == live["metadata"].get("generation")
    finally:
        await api.close()
        await kube.delete(f"/api/v1/namespaces/{elsewhere}")
