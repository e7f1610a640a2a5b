"""Sources of health: the probes and Quorum with their keys in a rule file, and the list of all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from rules.rulefile.fields import Pattern, Period
from rules.rulefile.guards import CountOrPercent, Rounding
from rules.rulefile.prometheus_sources import AlertmanagerWebhook as AlertmanagerWebhook
from rules.rulefile.prometheus_sources import Bound as Bound
from rules.rulefile.prometheus_sources import Confirm as Confirm
from rules.rulefile.prometheus_sources import PrometheusQuery as PrometheusQuery
from rules.rulefile.regex import compiled
from rules.rulefile.source_keys import TARGETS_MAX as TARGETS_MAX
from rules.rulefile.source_keys import Source as Source
from rules.rulefile.watches import BuiltInKind as BuiltInKind
from rules.rulefile.watches import ClusterProbe as ClusterProbe
from rules.rulefile.watches import CustomKind as CustomKind
from rules.rulefile.watches import EndpointsWatch as EndpointsWatch
from rules.rulefile.watches import HealthScript as HealthScript
from rules.rulefile.watches import LeaseWatch as LeaseWatch
from rules.rulefile.watches import NodeWatch as NodeWatch
from rules.rulefile.watches import WorkloadWatch as WorkloadWatch


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


def _expression(text: str) -> str:
    compiled(text)
    return text


Expression = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_expression)]
TIMEOUT_SECONDS = 2


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
