"""Dependencies of a workload: the objects that its pods name and cannot start without. Pure.

ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims, wherever a pod template can name one; Services, routes
and what else belongs to an application are workloads of their own to a rule. RBAC of a ServiceAccount stays behind:
what it may do elsewhere is that cluster's decision. Source: Karmada pkg/util/helper/unstructured.go and
pkg/resourceinterpreter/default/native/dependencies.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reactor.clients.changes import dict_of, list_of, text_of
from reactor.clients.kubernetes_port import JsonObject

EVERY_NAMESPACE_HAS = frozenset(
    {("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "openshift-service-ca.crt"), ("ServiceAccount", "default")}
)
"""Made by each cluster for itself."""
_SECRET_REFS = ("secretRef", "nodePublishSecretRef")
"""Fields by which volumes other than `secret` name the Secret that opens them (csi, cephfs, rbd, iscsi, flexVolume,
…)."""


class DependencyObject(NamedTuple):
    """One object of the workload's namespace."""

    kind: str
    name: str
    optional: bool = False
    """A pod starts without it."""

    @property
    def object(self) -> str:
        """`ConfigMap/shop`."""
        return f"{self.kind}/{self.name}"


def needs(found: JsonObject) -> tuple[DependencyObject, ...]:
    """Give what the object's pods name, each once, sorted; of a ServiceAccount the Secrets that it pulls images with.

    What is optional in one place and needed in another is needed. Anything odd is skipped: the API server has
    accepted it, and whether it means anything is for the kubelet to say.
    """
    if found.get("kind") == "ServiceAccount":
        named = [*_pull_secrets(found)]
    else:
        own = {
            f"{_name(one.get('metadata'))}" for one in list_of(dict_of(found.get("spec")).get("volumeClaimTemplates"))
        }
        # A StatefulSet makes these claims by itself, one for each pod.
        named = [
            need for need in _of_pod(_pod_spec(found)) if need.kind != "PersistentVolumeClaim" or need.name not in own
        ]
    required = {(need.kind, need.name) for need in named if not need.optional}
    unique = {DependencyObject(kind, name, (kind, name) not in required) for kind, name, _ in named if name}
    return tuple(sorted(need for need in unique if need[:2] not in EVERY_NAMESPACE_HAS))


def _pod_spec(found: JsonObject) -> JsonObject:
    spec = dict_of(found.get("spec"))
    if found.get("kind") == "Pod":
        return spec
    if found.get("kind") == "CronJob":
        spec = dict_of(dict_of(spec.get("jobTemplate")).get("spec"))
    return dict_of(dict_of(spec.get("template")).get("spec"))


def _of_pod(spec: JsonObject) -> Iterator[DependencyObject]:
    yield DependencyObject("ServiceAccount", text_of(spec.get("serviceAccountName") or spec.get("serviceAccount")))
    yield from _pull_secrets(spec)
    for volume in list_of(spec.get("volumes")):
        yield from _of_volume(volume)
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in list_of(spec.get(kind)):
            yield from _of_container(container)


def _of_volume(volume: JsonObject) -> Iterator[DependencyObject]:
    for source in (volume, *list_of(dict_of(volume.get("projected")).get("sources"))):
        if config := dict_of(source.get("configMap")):
            yield DependencyObject("ConfigMap", _name(config), _optional(config))
        if secret := dict_of(source.get("secret")):
            yield DependencyObject("Secret", text_of(secret.get("secretName") or secret.get("name")), _optional(secret))
    if claim := dict_of(volume.get("persistentVolumeClaim")):
        yield DependencyObject("PersistentVolumeClaim", text_of(claim.get("claimName")))
    if share := dict_of(volume.get("azureFile")):
        yield DependencyObject("Secret", text_of(share.get("secretName")))
    for source in volume.values():
        for field in _SECRET_REFS:
            yield DependencyObject("Secret", _name(dict_of(source).get(field)))


def _of_container(container: JsonObject) -> Iterator[DependencyObject]:
    for source in list_of(container.get("envFrom")):
        yield from _of_refs(source, "configMapRef", "secretRef")
    for variable in list_of(container.get("env")):
        yield from _of_refs(dict_of(variable.get("valueFrom")), "configMapKeyRef", "secretKeyRef")


def _of_refs(source: JsonObject, config_map: str, secret: str) -> Iterator[DependencyObject]:
    for field, kind in ((config_map, "ConfigMap"), (secret, "Secret")):
        ref = dict_of(source.get(field))
        yield DependencyObject(kind, _name(ref), _optional(ref))


def _pull_secrets(found: JsonObject) -> Iterator[DependencyObject]:
    # Optional: the kubelet pulls without one that is missing, and public images come all the same.
    return (DependencyObject("Secret", _name(ref), optional=True) for ref in list_of(found.get("imagePullSecrets")))


def _name(ref: Any) -> str:
    return text_of(dict_of(ref).get("name"))


def _optional(ref: JsonObject) -> bool:
    return ref.get("optional") is True
