"""World of the demo: its clusters, their objects, and the rule file. Plain values, nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bus.messages import iso
from reactor.demo.kube import Emulator, JsonObject

NAMESPACE = "shop"
ROUTE = "checkout"
HOME = "east"
"""The cluster with the route."""
BACKENDS: Mapping[str, str] = {"checkout": "east", "checkout-west": "west", "checkout-central": "central"}
"""The route's backends, each with its cluster. The first is the primary."""
PRIMARY = "checkout"
RULE = "checkout-failover"
ALERTS = "alertmanager"
TOLERATION_SECONDS = 5
RECOVERY_SECONDS = 8
REQUESTS_PER_SECOND = 50


def target(backend: str) -> str:
    """Give the target whose health speaks for a backend."""
    return f"service/{BACKENDS[backend]}/{NAMESPACE}/{ROUTE}"


def furnish(emulator: Emulator) -> None:
    """Put the objects into the clusters."""
    for name in BACKENDS.values():
        emulator.cluster(name).create(_service(ROUTE))
    home = emulator.cluster(HOME)
    for backend, cluster in BACKENDS.items():
        if cluster != HOME:  # as a multicluster mesh mirrors the service of another cluster
            home.create(_service(backend, {"mirror.linkerd.io/cluster-name": cluster}))
    home.create(
        {
            "apiVersion": "split.smi-spec.io/v1alpha2",
            "kind": "TrafficSplit",
            "metadata": {"name": ROUTE, "namespace": NAMESPACE},
            "spec": {
                "service": ROUTE,
                "backends": [{"service": name, "weight": int(name == PRIMARY)} for name in BACKENDS],
            },
        }
    )


def _service(name: str, labels: Mapping[str, str] | None = None) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels or {})},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    }


def rule_file(urls: Mapping[str, str]) -> str:
    """Give the rule file for services at these URLs, by backend."""
    probes = "".join(_PROBE.format(cluster=BACKENDS[name], target=target(name), url=urls[name]) for name in BACKENDS)
    backends = "".join(f"\n      - {{service: {name}, target: {target(name)}}}" for name in BACKENDS)
    return _RULES.format(
        probes=probes, alerts=ALERTS, rule=RULE, home=HOME, namespace=NAMESPACE, route=ROUTE, primary=PRIMARY,
        backends=backends, toleration=TOLERATION_SECONDS, recovery=RECOVERY_SECONDS,
    )  # fmt: skip


_PROBE = """
  - name: {cluster}-http
    kind: HttpProbe
    target: {target}
    signal: http
    url: {url}/healthz
    everySeconds: 1
    timeoutSeconds: 1
    failureThreshold: 2
"""

_RULES = """\
apiVersion: reactor/v1

# Where health comes from: each cluster's service is asked every second, two failures in a row make it Unhealthy.
sources:{probes}
  # Alertmanager may speak as well: the worst opinion decides.
  - name: {alerts}
    kind: AlertmanagerWebhook
    target: service/{{cluster}}/{{namespace}}/{{service}}
    signal: alert
    staleSeconds: 3600
    onResolved: Healthy   # the demo posts resolved only when it has seen the errors end

rules:
  - name: {rule}
    kind: TrafficFailover
    mode: Enforce   # DryRun, the default, decides and records and touches nothing
    route: {{cluster: {home}, kind: TrafficSplit, namespace: {namespace}, name: {route}}}
    primary: {primary}
    backends:{backends}
    tolerationSeconds: {toleration}   # failures shorter than this are ignored
    recoverySeconds: {recovery}   # must stay healthy this long before failback
    onAllDown: Hold
    failback:
      backoff: {{factor: 1}}   # you will break it again and again: by default each time it waits longer
"""


def alert(*, firing: bool, at: datetime) -> dict[str, Any]:
    """Give a post as Alertmanager makes it: the primary's alert, firing or resolved."""
    status = "firing" if firing else "resolved"
    labels = {"alertname": "ServiceDown", "cluster": HOME, "namespace": NAMESPACE, "service": ROUTE}
    one = {
        "status": status, "labels": labels, "annotations": {"summary": "checkout cannot be scraped"},
        "startsAt": iso(at), "endsAt": "0001-01-01T00:00:00Z" if firing else iso(at), "generatorURL": "",
        "fingerprint": "00c0ffee00c0ffee",
    }  # fmt: skip
    return {
        "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": status, "receiver": "reactor",
        "groupLabels": {}, "commonLabels": labels, "commonAnnotations": {}, "externalURL": "", "alerts": [one],
    }  # fmt: skip
