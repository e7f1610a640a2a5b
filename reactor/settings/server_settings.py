"""The settings of what rule files name and sources and carriers call: Prometheus, Alertmanager, clusters, clouds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, HttpUrl

from reactor.settings.part import SettingsPart


class Endpoint(SettingsPart):
    """A Prometheus or an Alertmanager."""

    url: HttpUrl
    """Its address, without `/api/…`."""
    bearer_token_file: Path | None = None
    """A file with the token of each request."""
    basic_user: str | None = None
    """Basic authentication: the user, with basicPasswordFile."""
    basic_password_file: Path | None = None
    """A file with the password of basicUser."""
    ca_file: Path | None = None
    """The CA of its certificate. Default: the system's."""
    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there. HTTP_PROXY and its like in the environment count for none of our clients."""
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] = 10
    """Seconds for each request, the wait for a free place of queriesAtOnce included."""
    max_series: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """A result with more series, or a list of more alerts, is an error, not a flood."""
    max_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] | None = None
    """Most bytes of an answer, unpacked: one with more is an error. Default: for each of maxSeries 1,024 of a
    Prometheus, 4,096 of an Alertmanager."""
    queries_at_once: Annotated[int, Field(ge=1, le=256)] = 8
    """Prometheus only: how many queries it is asked at once. Its own limit, --query.max-concurrency, is 20 by default,
    for all who ask."""


class ClusterSettings(SettingsPart):
    """A Kubernetes cluster. With neither key: the cluster that the process runs in."""

    kubeconfig: Path | None = None
    """A kubeconfig file. Default: the service account of the Pod."""
    context: str | None = None
    """A context of it. Default: its current one."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels by which placement selects it; so do the next three."""
    region: str = ""
    """Region, for spreadByField and fieldSelector."""
    zone: str = ""
    """Zone, for spreadByField and fieldSelector."""
    provider: str = ""
    """Provider, for spreadByField and fieldSelector."""


class Karmada(SettingsPart):
    """The Karmada control plane that rules with `carrier: Karmada` act on."""

    cluster: str = "karmada"
    """Cluster whose API holds bindings, policies and Cluster objects: a name among `clusters`."""
    host: str = ""
    """Cluster in which Karmada's own components run, to see which of its switches are on; empty: on the same API."""


class AwsAccess(SettingsPart):
    """The way to Amazon's APIs: network ACLs, Route 53, target groups. Credentials are boto3's business."""

    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there."""
