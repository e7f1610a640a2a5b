"""ZoneIsolation: what a rule that takes a zone out of service may say. Grown from GEP-21."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from bus.characters import all_seen
from rules.rulefile.fields import ClusterName, KubeName, Model, Pattern, Seconds, TargetName
from rules.rulefile.guards import BlockedWindow
from rules.rulefile.model import Rule
from rules.rulefile.recovery_backoff import RecoveryBackoff
from rules.rulefile.targets import encode_segment

Fraction = Annotated[float, Field(gt=0, le=1)]
"""A part of a whole: 0.6 is 60 %."""
ZoneName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=63)]
"""As nodes carry it in a label."""
SignalName = Annotated[str, StringConstraints(min_length=1, max_length=253), AfterValidator(all_seen)]
StepSeconds = Annotated[float, Field(ge=1, le=86_400)]


class StepName(StrEnum):
    """The steps, in their order. Undone in reverse, but the network is always opened first."""

    FENCE = "Fence"
    SHIFT_TRAFFIC = "ShiftTraffic"
    EVACUATE = "Evacuate"
    CUT_NETWORK = "CutNetwork"
    VERIFY = "Verify"


STEP_SECONDS: Mapping[StepName, float] = {
    StepName.FENCE: 120, StepName.SHIFT_TRAFFIC: 300, StepName.EVACUATE: 900, StepName.CUT_NETWORK: 300,
    StepName.VERIFY: 300,
}  # fmt: skip
"""Seconds that a step may take by default. Evacuate: after this, what still runs is left, or forced."""


class Zone(Model):
    """One zone of the cluster."""

    name: ZoneName
    """As nodes carry it (on AWS its code): eu-central-1a."""
    id: ZoneName | None = None
    """The provider's own, the same in every account: euc1-az1. Required for Gardener and AwsNetworkAcl."""
    targets: tuple[TargetName, ...] = Field(default=(), max_length=1000)
    """Targets that are served from this zone: ShiftTraffic tells the project's own traffic rules that they are bad."""


class ShootRef(Model):
    """A Gardener Shoot."""

    cluster: ClusterName = "garden"
    """The garden cluster, by its name in the settings."""
    namespace: KubeName
    """The namespace of the Shoot on its garden cluster: `garden-` and its project."""
    name: KubeName
    """The name of the Shoot on its garden cluster."""


class SeedRef(Model):
    """Place of a Shoot's control plane."""

    cluster: ClusterName
    """The seed cluster, by its name in the settings."""
    namespace: KubeName
    """The Shoot's namespace there: shoot--core--prod."""


class NoNetwork(Model):
    """The network is left as it is."""

    provider: Literal["None"] = "None"
    """None: the network is not changed."""


class AwsNetworkAcl(Model):
    """Subnets of the zone get a network ACL that denies everything. What they had is kept in a tag of each."""

    provider: Literal["AwsNetworkAcl"]
    """AwsNetworkAcl: network ACLs of AWS cut the zone's subnets."""
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", max_length=32)]
    """Of the zone: eu-central-1."""
    vpc_id: Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]{8,17}$")]
    """Only its subnets are touched."""
    subnet_tags: Mapping[str, str] = {}
    """Only subnets with all of these tags; an empty value means any. Default: all of the zone."""


class LabelledNetworkPolicy(Model):
    """Pods of the zone get a label that a NetworkPolicy denies everything: as good as its network plugin is."""

    provider: Literal["LabelledNetworkPolicy"]
    """LabelledNetworkPolicy: a NetworkPolicy cuts the zone's pods."""
    exclude_namespaces: tuple[KubeName, ...] = ("kube-system",)
    """Pods that are not cut, such as the storage drivers that detach the zone's volumes."""


NetworkIsolation = Annotated[NoNetwork | AwsNetworkAcl | LabelledNetworkPolicy, Field(discriminator="provider")]


class Force(StrEnum):
    """Treatment of pods that their disruption budgets keep in the zone."""

    NEVER = "Never"
    AFTER_TIMEOUT = "AfterTimeout"


class Batches(Model):
    """Batches in which nodes return: the first, a wait, a share of all, a wait, the rest."""

    first: Annotated[int, Field(ge=1, le=1000)] = 1
    """The number of nodes in the first batch."""
    percent: Annotated[int, Field(ge=1, le=100)] = 25
    """The share of all nodes in the second batch, in percent."""
    bake_seconds: Annotated[float, Field(ge=0, le=86_400)] = 300
    """The time for which one batch is watched before the next."""


class Verify(Model):
    """Condition for a zone to count as isolated."""

    prometheus: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """The server that is asked: a name under `prometheus` in the settings."""
    query: Annotated[str, StringConstraints(min_length=1, max_length=16_384)]
    """Must give one or more series, all of them non-zero."""


class Failback(Model):
    """The return of a zone, and the times at which it must not return."""

    signals: tuple[SignalName, ...] | None = Field(default=None, min_length=2)
    """Signals that prove that it is healthy, two or more. Default: those of the rule. Where the network is cut, take
    signals that see the zone from outside: its nodes stay NotReady until it is opened."""
    automatic: bool = True
    """`true`: a zone that the rule itself has isolated comes back by itself. One that a person has, never does."""
    batches: Batches = Batches()
    """The batches in which nodes come back."""
    backoff: RecoveryBackoff = RecoveryBackoff()
    """A longer wait than recoverySeconds for a zone that has failed again soon after its return. A failback by command
    skips it, and clears it. It applies only if the key is written, if only as `backoff: {}`."""
    blocked_windows: tuple[BlockedWindow, ...] = Field(default=(), max_length=15)
    """Times in which no zone is brought back."""


class OnExpiry(StrEnum):
    """End of an isolation that lasts for expirySeconds."""

    ALERT = "Alert"
    FAILBACK = "Failback"


class Practice(BlockedWindow):
    """A drill by schedule, as the cloud providers' weekly practice runs: it shows that the other zones carry on.

    A run starts when its window opens and is asked back when it closes; then the zone still has to be healthy.
    """

    zones: tuple[ZoneName, ...] = Field(default=(), max_length=32)
    """The zones that take turns, week by week. Default: all of the rule."""
    steps: tuple[StepName, ...] = Field(default=(StepName.FENCE, StepName.SHIFT_TRAFFIC), min_length=1)
    """The steps that a drill takes, as for an isolation."""
    blocked_windows: tuple[BlockedWindow, ...] = Field(default=(), max_length=15)
    """Times in which no drill starts."""
    stop_signals: tuple[Pattern, ...] = Field(default=(), max_length=10)
    """Targets that stop a run from starting, and end one, as soon as one of them is not Healthy. If a pattern
    matches no target with an observation, none starts."""


class ZoneIsolation(Rule):
    """Takes a zone out of service in order, and brings it back in reverse."""

    kind: Literal["ZoneIsolation"]
    carrier: Literal["Kubernetes", "Gardener"] = "Kubernetes"
    """Kubernetes: the reactor fences, drains and cuts itself. Gardener: it asks the Shoot for it."""
    cluster: ClusterName | None = None
    """The cluster, by its name in the settings. Gardener: default the Shoot's name."""
    shoot: ShootRef | None = None
    """The Shoot to which the zones belong, with Gardener only."""
    seed: SeedRef | None = None
    """Gardener only: with it the reactor writes Worker and SubnetIsolation itself."""
    zones: tuple[Zone, ...] = Field(min_length=2, max_length=32)
    """All zones of the cluster, with two or more."""
    toleration_seconds: Seconds = 300
    """The time for which a zone must be bad without a break before it is isolated."""
    recovery_seconds: Seconds = 1800
    """The time for which it must be healthy again before it is opened."""
    steps: tuple[StepName, ...] = Field(default=tuple(StepName), min_length=1, max_length=len(StepName))
    """The steps, in this order; undone in reverse."""
    step_timeout_seconds: Mapping[StepName, StepSeconds] = {}
    """The time that a step may take before the isolation is Failed."""
    network: NetworkIsolation = NoNetwork()
    """The means by which the zone is cut off from the network."""
    drain_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30
    """ShiftTraffic: how long requests in flight are waited for."""
    max_parallel_evictions: Annotated[int, Field(ge=1, le=500)] = 10
    """Evacuate: how many pods without volumes may be on their way out at once."""
    force: Force = Force.NEVER
    """Evacuate: AfterTimeout takes away what is still there, disruption budgets or not."""
    verify: Verify | None = None
    """Verify: a query besides what the reactor sees itself."""
    failback: Failback = Failback()
    """The return of a zone into service."""
    expiry_seconds: Annotated[float, Field(ge=60, le=366 * 86_400)] = 259_200
    """The time that an isolation may last before an alert: three days, as the longest zonal shift of a cloud."""
    on_expiry: OnExpiry = OnExpiry.ALERT
    """Failback asks the zone back, which still has to be healthy: no zone is opened by a timer alone."""
    cooldown_seconds: Seconds = 1800
    """Quiet time after an isolation is over."""
    expired_lease_fraction: Fraction = 0.6
    """From this share of expired leases in the other zones on, the reactor takes itself for the blind one."""
    healthy_share: Fraction = 0.75
    """Of the remaining nodes that have to be healthy."""
    demand_share: Fraction = 1
    """Of the demanded nodes that the remaining healthy ones have to reach."""
    quorum_share: Annotated[float, Field(ge=0.5, lt=1)] = 0.5
    """More than this share of a quorum's members has to stay."""
    practice: Practice | None = None
    """Drills that take a zone out: their times and their length."""

    @property
    def default_peers(self) -> tuple[str, ...]:
        """All zones."""
        return ("zone/**",)

    @property
    def cluster_name(self) -> str:
        """The cluster whose zones these are: in targets (`zone/<cluster>/<zone>`), the inventory and the settings."""
        return self.cluster or (self.shoot.name if self.shoot else "")

    @property
    def backs_off(self) -> bool:
        """True if a zone that fails again has to wait longer."""
        return "backoff" in self.failback.model_fields_set

    @property
    def object(self) -> str:
        """Object of the rule: the cluster, or for a Shoot `<namespace>/<name>`."""
        return f"{self.shoot.namespace}/{self.shoot.name}" if self.shoot is not None else self.cluster_name

    def zone(self, name: str) -> Zone | None:
        """Give the zone of this name."""
        return next((zone for zone in self.zones if zone.name == name), None)

    def target(self, zone: str) -> str:
        """`zone/<cluster>/<zone>`."""
        return f"zone/{encode_segment(self.cluster_name)}/{encode_segment(zone)}"

    def seconds_for(self, step: StepName) -> float:
        """Seconds that this step may take."""
        return self.step_timeout_seconds.get(step, STEP_SECONDS[step])
