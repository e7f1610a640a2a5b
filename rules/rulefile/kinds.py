"""All kinds of rules and sources that a file may hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.rulefile.isolation import ZoneIsolation
from rules.rulefile.model import Notification, TrafficFailover
from rules.rulefile.sources import LoadedSource as LoadedSource
from rules.rulefile.workload import ClusterTaint, WorkloadFailover

LoadedRule = TrafficFailover | WorkloadFailover | ClusterTaint | ZoneIsolation | Notification

AnyRule = Annotated[LoadedRule, Field(discriminator="kind")]
AnySource = Annotated[LoadedSource, Field(discriminator="kind")]
