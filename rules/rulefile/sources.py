"""Sources of health: their keys in a rule file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bus.characters import all_seen
from rules.rulefile.guards import CountOrPercent, Rounding
from rules.rulefile.matchers import Matchers
from rules.rulefile.model import ClusterName, KubeName, Model, Name, Pattern, Period, Seconds, Selector, Template
from rules.rulefile.regex import compiled


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        unusable = parts.port == 0
    except ValueError as error:
        msg = f"no URL that can be asked: {error}"
        raise ValueError(msg) from error
    if unusable:
        msg = "no URL that can be asked: nothing listens on port 0"
        raise ValueError(msg)
    if "@" in parts.netloc:
        msg = "a user and password have no place in a rule file, which many may read"
        raise ValueError(msg)
    return text


def _header(text: str) -> str:
    if not text.isprintable():
        msg = "a header is one line of printable characters"
        raise ValueError(msg)
    return text


Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#]+[^\s]*$", max_length=2048), AfterValidator(_url)]
Header = Annotated[str, AfterValidator(_header)]
Host = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[^\s/@]+$")]
Port = Annotated[int, Field(ge=1, le=65_535)]
Threshold = Annotated[int, Field(ge=1, le=1000)]


def _matchers(text: str) -> str:
    Matchers.parse(text)
    return text


def _expression(text: str) -> str:
    compiled(text)
    return text


MatchersText = Annotated[str, StringConstraints(max_length=4096), AfterValidator(_matchers)]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_expression)]
TIMEOUT_SECONDS = 2
TARGETS_MAX = 10_000
"""Of how many targets a source may speak where its rule file does not say: some 15 kB of memory each."""
TARGETS_OF_ALERTS_MAX = 5000
"""The same of alerts, whose labels may be ever new ones: the largest group that Alertmanager was seen to post."""
OBJECTS_MAX = 100_000
"""The same where each target is an object of a cluster."""
ALERTS_MAX = 100_000
"""Largest number of alerts of one source of alerts, as many as one post: some 2.5 kB of memory each with few labels."""
AlertsMax = Annotated[int, Field(ge=1, le=10_000_000)]
TargetsMax = Annotated[int, Field(ge=1, le=1_000_000)]
PromQL = Annotated[str, StringConstraints(min_length=1, max_length=16_384)]


class Source(Model):
    """Keys of every source."""

    name: Name
    """The name of the source. Unique in all files."""
    target: Template
    """The target that it observes; `{label}` takes a label. A missing label is a counted error, never an empty part."""
    signal: Annotated[str, StringConstraints(min_length=1, max_length=253), AfterValidator(all_seen)] | None = None
    """The signal: one of several opinions about the target. Default: the source's name."""
    refresh_seconds: Annotated[float, Field(ge=1, le=3600)] = 30
    """An unchanged status is said again at least this often."""
    stale_seconds: Annotated[float, Field(ge=1, le=86_400)] = 90
    """A target without an observation for this long becomes Unknown."""
    max_targets: TargetsMax = TARGETS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""

    @property
    def says(self) -> str:
        """The signal that its observations carry."""
        return self.signal or self.name


class Probe(Source):
    """An active check, with the kubelet's words for its timing."""

    every_seconds: Period = 10
    """Seconds between two tries."""
    timeout_seconds: Annotated[float, Field(ge=0.01, le=300)] = TIMEOUT_SECONDS
    """Time limit of a try; at most everySeconds. Default: 2, or everySeconds where that is less."""
    failure_threshold: Threshold = 3
    """The number of tries in a row that must fail before the target is Unhealthy."""
    success_threshold: Threshold = 1
    """The number of tries in a row that must succeed before it is Healthy."""

    @model_validator(mode="before")
    @classmethod
    def _no_default_longer_than_the_period(cls, given: Any) -> Any:
        every = given.get("everySeconds") if isinstance(given, Mapping) else None
        if not isinstance(every, int | float) or "timeoutSeconds" in given or not 0.01 <= every < TIMEOUT_SECONDS:
            return given
        return {**given, "timeoutSeconds": float(every)}


class HttpProbe(Probe):
    """GET or HEAD a URL."""

    kind: Literal["HttpProbe"]
    url: Url
    """The URL to request, http or https."""
    method: Literal["GET", "HEAD"] = "GET"
    """The HTTP method that the probe sends."""
    headers: Mapping[Header, Header] = {}
    """Names and values that each request carries."""
    expect_status: (
        Annotated[str, StringConstraints(pattern=r"^[1-5]\d\d(-[1-5]\d\d)?(,[1-5]\d\d(-[1-5]\d\d)?)*$")] | int
    ) = "200-399"
    """Codes and ranges: `200`, `200-299`, `200,204,301-302`."""
    expect_body: Expression | None = None
    """RE2, found anywhere in the first 64 KiB."""
    follow_redirects: bool = False
    """true: follow redirects. false: compare the status of the redirect itself."""


class TcpProbe(Probe):
    """Open a connection."""

    kind: Literal["TcpProbe"]
    host: Host
    """The host to connect to: its name or IP address."""
    port: Port
    """The TCP port to connect to."""


class GrpcProbe(Probe):
    """grpc.health.v1.Health/Check."""

    kind: Literal["GrpcProbe"]
    host: Host
    """The host to connect to: its name or IP address."""
    port: Port
    """The TCP port to connect to."""
    service: Annotated[str, StringConstraints(max_length=253)] = ""
    """The service to ask for. Empty: the whole server."""
    tls: bool = False
    """`true`: the connection is encrypted by TLS."""


class EndpointsWatch(Source):
    """EndpointSlices of Services."""

    kind: Literal["EndpointsWatch"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    namespace: KubeName | None = None
    """All namespaces by default."""
    selector: Selector | None = None
    """Labels of the Services' EndpointSlices; all by default."""
    min_ready: Annotated[int, Field(ge=1, le=100_000)] = 1
    """A Service with at least this many ready endpoints is Healthy."""
    target: Template = "service/{cluster}/{namespace}/{service}"
    """The target of each Service; `{cluster}`, `{namespace}` and `{service}` are replaced."""
    max_targets: TargetsMax = OBJECTS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""


class ClusterProbe(Source):
    """An API server's /readyz, and its /healthz where there is no /readyz."""

    kind: Literal["ClusterProbe"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    every_seconds: Period = 10
    """A reading that fails has been tried four times within two seconds."""
    failure_seconds: Seconds = 30
    """The time for which readings must fail before a cluster that was Healthy is so no more."""
    success_seconds: Seconds = 30
    """The time for which they must succeed before it is Healthy again."""
    target: Template = "cluster/{cluster}"
    """The target of the cluster; `{cluster}` is replaced."""


class LeaseWatch(Source):
    """Heartbeats: Leases that their owners renew."""

    kind: Literal["LeaseWatch"]
    cluster: ClusterName
    """The cluster with the Leases: for Karmada its control plane."""
    namespace: KubeName = "karmada-cluster"
    """The namespace whose Leases are heartbeats."""
    monitor_seconds: Period = 5
    """Seconds between two checks for silent Leases."""
    grace_seconds: Annotated[float, Field(ge=1, le=86_400)] = 40
    """Unknown after more than so long without a renewal."""
    startup_grace_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60
    """The same for a Lease that has not been seen renewed yet."""
    target: Template = "cluster/{name}"
    """The target of each Lease; `{name}` is the name of the Lease."""


BuiltInKind = Literal[
    "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job", "Service", "Ingress", "PersistentVolumeClaim"
]


class CustomKind(Model):
    """Any other kind that the cluster serves."""

    api_version: Annotated[
        str, StringConstraints(pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[a-z0-9]+$", max_length=317)
    ]
    """Group and version of the kind, such as `example.com/v1`."""
    kind: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)]
    """`Widget`, as objects name it."""


class HealthScript(Model):
    """Judgement of health instead of the built-in rules; one of the two."""

    lua: Annotated[str, StringConstraints(min_length=1, max_length=65_536)] | None = None
    """A Karmada script: the function `InterpretHealth(observedObj)` gives true or false."""
    cel: Annotated[str, StringConstraints(min_length=1, max_length=16_384)] | None = None
    """An expression over `object` that gives true or false."""


class WorkloadWatch(Source):
    """Health of workloads by what their objects say."""

    kind: Literal["WorkloadWatch"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    namespace: KubeName | None = None
    """All namespaces by default."""
    kinds: Annotated[tuple[BuiltInKind | CustomKind, ...], Field(min_length=1, max_length=64)] = (
        "Deployment", "StatefulSet", "DaemonSet"
    )  # fmt: skip
    """Names of built-in kinds, or {apiVersion, kind} of others."""
    selector: Selector | None = None
    """Labels of the objects; all by default."""
    health: HealthScript | None = None
    """Default: the built-in rule of each kind; for other kinds their condition Ready, else Available."""
    target: Template = "workload/{cluster}/{namespace}/{kind}/{name}"
    """The target of each object; `{cluster}`, `{namespace}`, `{kind}` and `{name}` are replaced."""
    max_targets: TargetsMax = OBJECTS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""


class NodeWatch(Source):
    """Nodes' Ready conditions; also the health of zones, and what is to be known before a zone may go."""

    kind: Literal["NodeWatch"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    zone_label: Annotated[
        str, StringConstraints(pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=317)
    ] = "topology.kubernetes.io/zone"
    """The label by which a node says in which zone it is."""
    target: Template = "node/{cluster}/{node}"
    """The target of each node; `{cluster}` and `{node}` are replaced."""
    max_targets: TargetsMax = OBJECTS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""


class Quorum(Source):
    """A target's health from that of its members."""

    kind: Literal["Quorum"]
    members: Pattern
    """Targets that are its members."""
    unhealthy_at: CountOrPercent
    """Unhealthy when so many members are: a count, or a percentage of those that are known. Unknown where members that
    are Unknown could make it so."""
    min_members: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Unknown while fewer members are known."""
    rounding: Rounding | None = None
    """Rounding of a percentage to a count, never less than 1; must be written for a percentage."""


class Bound(Model):
    """A number that a sample is compared with."""

    above: float | None = None
    """Unhealthy if the sample is greater than this."""
    below: float | None = None
    """Unhealthy if the sample is less than this."""


class PrometheusQuery(Source):
    """A PromQL instant query on a schedule."""

    kind: Literal["PrometheusQuery"]
    prometheus: Name
    """A named endpoint of the settings."""
    query: PromQL
    """PromQL, evaluated as an instant query."""
    every_seconds: Period = 15
    """Seconds between two queries."""
    unhealthy_when: Literal["Present", "Absent"] | Bound = "Present"
    """Present: a series in the result is Unhealthy, one that leaves is Healthy. Absent: the other way round.
    above, below: by the sample."""


class Confirm(Model):
    """Proof that a resolved alert's target has recovered."""

    prometheus: Name
    """A named endpoint of the settings."""
    query: PromQL
    """Any series that agrees with the alert's labels is the proof."""
    every_seconds: Period = 15
    """Seconds between two queries."""


class AlertmanagerWebhook(Source):
    """Alerts of Alertmanager's webhook, version 4: firing is Unhealthy."""

    kind: Literal["AlertmanagerWebhook"]
    max_targets: TargetsMax = TARGETS_OF_ALERTS_MAX
    """The most targets that its alerts may have. Observations of more are refused and counted."""
    max_alerts: AlertsMax = ALERTS_MAX
    """The most alerts that it may have: firing ones, and resolved ones that are still remembered. Further ones are
    refused and counted."""
    matchers: MatchersText | tuple[MatchersText, ...] = ""
    """Alertmanager's syntax; all must match. Empty: every alert."""
    on_resolved: Literal["Confirm", "Healthy"] = "Confirm"
    """Confirm: resolved is Unknown until confirmed. Alertmanager also says resolved when Prometheus died."""
    confirm: Confirm | None = None
    """The only proof of recovery, where it is given. Else another signal proves it, one that was Unhealthy in the same
    outage and is Healthy now."""
    max_silence_seconds: Annotated[float, Field(ge=1, le=86_400 * 7)] | None = None
    """The time for which the newest POST proves that an alert still fires, where the settings name no Alertmanager to
    ask. Default: staleSeconds. A window that ends later waits for the next POST."""

    @property
    def recovers(self) -> bool:
        """True if it ever reports Healthy by itself."""
        return self.on_resolved == "Healthy" or self.confirm is not None

    @property
    def post_proves_seconds(self) -> float:
        """For how long after it came in a POST proves that an alert fires, where no Alertmanager can be asked."""
        return self.stale_seconds if self.max_silence_seconds is None else self.max_silence_seconds


LoadedSource = (
    HttpProbe
    | TcpProbe
    | GrpcProbe
    | ClusterProbe
    | LeaseWatch
    | EndpointsWatch
    | WorkloadWatch
    | NodeWatch
    | Quorum
    | PrometheusQuery
    | AlertmanagerWebhook
)
"""All kinds of sources that a rule file may hold."""
AnySource = Annotated[LoadedSource, Field(discriminator="kind")]
