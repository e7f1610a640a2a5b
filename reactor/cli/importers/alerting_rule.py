"""One alerting rule of Prometheus: the labels that its alerts can have, and the target that they give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reactor.cli.importers.importing import path_of
from reactor.cli.shared.alerting import fixed_labels, label_names, mapping
from rules.rulefile.promql_tree import Query, read_promql
from rules.rulefile.targets import check_template, encode_segment
from rules.rulefile.yaml import Document
from rules.rulefile.yaml import Path as At

NO_LABELS = "the result has no label, so it names no target"
NO_TARGET = "no label names an instance, a job or a Kubernetes object"
NO_CLUSTER = "it names a Kubernetes object and no cluster: use --cluster NAME"
ABSENT = "absent() is about missing series, which have no labels"
NO_PROMQL = "the expression cannot be read as PromQL"
_SCRAPED = frozenset({"instance", "job"})
"""Labels that each series has that Prometheus itself has scraped."""
_OBJECTS = re.compile(r"\bkube_\w+")
"""Metrics of kube-state-metrics: their instance is that exporter, not what they are about."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of the command line."""

    target: str | None
    way: str
    alerts: tuple[str, ...]
    prometheus: str
    on_resolved: str
    cluster: str | None


@dataclass(frozen=True, slots=True)
class AlertTarget:
    """Target of an alert."""

    template: str
    about: str
    """One word, for names."""
    confirm: str | None = None
    """A query whose series show that the thing is there and seen."""


@dataclass(frozen=True, slots=True)
class _Usual:
    """A target whose labels are common."""

    labels: tuple[str, ...]
    path: str
    about: str
    confirm: str


_KUBERNETES = (
    _Usual(("namespace", "deployment"), "workload/{cluster}/{namespace}/Deployment/{deployment}", "deployment",
           "kube_deployment_created"),
    _Usual(("namespace", "statefulset"), "workload/{cluster}/{namespace}/StatefulSet/{statefulset}", "statefulset",
           "kube_statefulset_created"),
    _Usual(("namespace", "daemonset"), "workload/{cluster}/{namespace}/DaemonSet/{daemonset}", "daemonset",
           "kube_daemonset_created"),
    _Usual(("namespace", "job_name"), "workload/{cluster}/{namespace}/Job/{job_name}", "job-object",
           "kube_job_created"),
    _Usual(("namespace", "pod"), "workload/{cluster}/{namespace}/Pod/{pod}", "pod", "kube_pod_info"),
    _Usual(("namespace", "service"), "service/{cluster}/{namespace}/{service}", "service", "kube_service_info"),
    _Usual(("node",), "node/{cluster}/{node}", "node", "kube_node_info"),
)  # fmt: skip
"""The closest first."""
_ANYWHERE = (
    _Usual(("instance",), "custom/instance/{instance}", "instance", "up == 1"),
    _Usual(("job",), "custom/job/{job}", "job", "sum by (job) (up) > 0"),
)


@dataclass(frozen=True)
class AlertingRule:
    """An alerting rule, its place in the file, and its group."""

    document: Document
    at: At
    group: Mapping[str, Any]

    @property
    def rule(self) -> Any:
        return self.document.at(self.at)

    @property
    def name(self) -> str:
        return str(self.rule["alert"])

    @property
    def place(self) -> tuple[str, str, str]:
        """Words for where it is: its file, the file's folder, both; or name and namespace of its PrometheusRule."""
        above = self.at[: self.at.index("groups")]
        if above[-1:] == ("spec",):
            own = path_of(self.document.at(above[:-1]))
            return own[-1] if own else "", own[0] if own else "", "-".join(own)
        file = Path(self.document.file)
        folder = file.absolute().parent.name
        return file.stem, folder, f"{folder}-{file.stem}"

    @property
    def fixed(self) -> dict[str, str]:
        """Labels that every alert of this rule has, whatever its series."""
        return fixed_labels(self.group.get("labels")) | fixed_labels(self.rule.get("labels"))

    @cached_property
    def expression(self) -> Query:
        return read_promql(str(self.rule["expr"]))

    @cached_property
    def labels(self) -> frozenset[str]:
        """Labels that its series are known to have: by the expression, and by the templates that name them."""
        can = self.expression.labels
        if not can.all_but:
            return can.names
        told = label_names(self.rule.get("annotations")) | label_names(self.rule.get("labels"))
        return frozenset(name for name in told | _SCRAPED if can.may_have(name))

    def target(self, wanted: Wanted) -> AlertTarget | str:
        """Give what it is about, or why that cannot be said."""
        text = str(self.rule["expr"])
        added = {"alertname": self.name, **self.fixed}
        if wanted.way == "webhook":
            added |= dict.fromkeys(map(str, mapping(self.rule.get("labels"))), "")
        if wanted.target is not None:
            missing = sorted(
                name for name in check_template(wanted.target)
                if name not in added and not self.expression.labels.may_have(name)
            )  # fmt: skip
            return f"no series has the label {missing[0]}" if missing else AlertTarget(self._filled(wanted), "alerts")
        if self.expression.problem:
            return NO_PROMQL
        if "absent(" in text or "absent_over_time(" in text:
            return ABSENT
        known = self.labels | added.keys()
        if found := next((usual for usual in _KUBERNETES if known.issuperset(usual.labels)), None):
            cluster = "{cluster}" if "cluster" in known else wanted.cluster and encode_segment(wanted.cluster)
            if not cluster:
                return NO_CLUSTER
            return AlertTarget(found.path.replace("{cluster}", cluster), found.about, found.confirm)
        if not _OBJECTS.search(text) and (
            found := next((usual for usual in _ANYWHERE if known.issuperset(usual.labels)), None)
        ):
            return AlertTarget(found.path, found.about, found.confirm)
        return NO_TARGET if self.labels else NO_LABELS

    def _filled(self, wanted: Wanted) -> str:
        """The target template with --as. Series have no labels of the alert, so those that are known are written
        out."""
        target = wanted.target or ""
        if wanted.way == "query":
            for label, value in ({"alertname": self.name} | self.fixed).items():
                target = target.replace(f"{{{label}}}", encode_segment(value))
        return target
