"""Settings of a step from its rule, as they travel with the action.

An unknown key is refused: it is a newer decider's, and may restrain the step. A process that knows it does the step.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Seconds = Annotated[float, Field(ge=0, le=86_400)]
Force = Literal["Never", "AfterTimeout"]


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Network(_Part):
    """Way to cut the zone's network."""

    provider: Literal["None", "AwsNetworkAcl", "LabelledNetworkPolicy"] = "None"
    region: str = ""
    """AwsNetworkAcl: required."""
    vpc_id: str = ""
    """AwsNetworkAcl: required. Only its subnets are touched."""
    subnet_tags: dict[str, str] = {}
    """AwsNetworkAcl: only subnets with all of these tags; an empty value means any. None given: all of the zone."""
    exclude_namespaces: tuple[str, ...] = ("kube-system",)
    """LabelledNetworkPolicy: pods that are not cut, such as the storage drivers that detach the zone's volumes."""


class BatchSettings(_Part):
    """Batches in which nodes come back: `first`, a wait, `percent` of all, a wait, the rest."""

    first: Annotated[int, Field(ge=1)] = 1
    percent: Annotated[int, Field(ge=1, le=100)] = 25
    bake_seconds: Seconds = 300


class Reference(_Part):
    """An object or a namespace in a cluster of the settings."""

    cluster: str = ""
    """Name of the cluster; empty: the rule's."""
    namespace: str
    name: str = ""


class StepSettings(_Part):
    """Settings of one step."""

    mode: str = ""
    """Mode of the isolation, for people: it has decided the order of the steps."""
    timeout_seconds: Seconds = 900
    """Seconds from `decidedAt`; their meaning depends on the step."""
    by: str = ""
    """Fence and Verify: the person who has asked for the isolation; empty: the rule itself. Written on each node."""
    practice: bool = False
    """Fence and Verify: a drill. Written on each node."""
    batches: BatchSettings = BatchSettings()
    unproven: bool = False
    """Fence: nodes come back whether or not those before them are Ready, because a person has said so."""
    targets: tuple[str, ...] = ()
    """ShiftTraffic, Verify: targets in this zone that our traffic rules are told are Unhealthy (signal
    zone-isolation)."""
    drain_seconds: Seconds = 0
    """ShiftTraffic: how long requests in flight are waited for, from `decidedAt`."""
    max_parallel: Annotated[int, Field(ge=1, le=500)] = 10
    """Evacuate: how many pods without volumes may be on their way out at once."""
    force: Force = "Never"
    network: Network = Network()
    steps: tuple[str, ...] = ()
    """Verify: which steps the isolation is made of; empty: all."""
    healthy_share: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Verify: of the other zones' nodes that have to be Ready."""
    prometheus: str = ""
    """Verify: the settings' name of a Prometheus."""
    query: str = ""
    """Verify: must give one or more series, all of them non-zero."""
    shoot: Reference | None = None
    """Gardener: the Shoot; `cluster` is the garden."""
    seed: Reference | None = None
    """Gardener: the Shoot's namespace in its Seed. With it we write Worker and SubnetIsolation ourselves."""
