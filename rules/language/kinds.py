"""All kinds of rules and sources that a file may hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.language.model import Notification, TrafficFailover
from rules.language.sources import (
    AlertmanagerWebhook,
    ClusterProbe,
    EndpointsWatch,
    GrpcProbe,
    HttpProbe,
    LeaseWatch,
    NodeWatch,
    PrometheusQuery,
    Quorum,
    TcpProbe,
    WorkloadWatch,
)
from rules.language.workload import ClusterTaint, WorkloadFailover
from rules.language.zone import ZoneIsolation

LoadedRule = TrafficFailover | WorkloadFailover | ClusterTaint | ZoneIsolation | Notification
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

AnyRule = Annotated[LoadedRule, Field(discriminator="kind")]
AnySource = Annotated[LoadedSource, Field(discriminator="kind")]
