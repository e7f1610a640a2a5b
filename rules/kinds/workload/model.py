"""WorkloadFailover and ClusterTaint: the spec of a Karmada PropagationPolicy as people paste it, and a little more.

Values that only make sense together, and numbers below their bounds, are findings of `checks`, so that all
mistakes of a policy are told at once. Shapes: Karmada's CRDs, and the three proposals that went beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from bus.messages import Carrier, Health
from rules.kinds.workload.placement import AtLeastZero, LabelSelector, Many, OnInsufficient, Placement, Strategy, Text
from rules.rulefile.fields import KubeName, Model, Selector, Short
from rules.rulefile.model import Rule
from rules.rulefile.recovery_backoff import RecoveryBackoff


class PurgeMode(StrEnum):
    """Removal of the old copy."""

    DIRECTLY = "Directly"
    GRACEFULLY = "Gracefully"
    NEVER = "Never"


_OLD_WORDS = {"Immediately": "Directly", "Graciously": "Gracefully", "": "Gracefully"}
AnyPurgeMode = Annotated[
    PurgeMode, BeforeValidator(lambda value: _OLD_WORDS.get(value, value) if isinstance(value, str) else value)
]
"""In today's words, or in those of Karmada before 1.15."""


class OnGraceExpired(StrEnum):
    """End of the old copy when the new ones are not Healthy in time."""

    KEEP = "Keep"
    PURGE = "Purge"


class PreservationRule(Model):
    """One value of the old copy's status that the new one gets as a label."""

    alias_label_name: Text
    """Key of the label on the new copy that gets the value."""
    json_path: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """Within `status`: `{.replicas}`, `{.conditions[?(@.type=="Ready")].status}`."""


class StatePreservation(Model):
    """State that is carried over. All values are there and fit into labels, or the copy does not leave."""

    rules: tuple[PreservationRule, ...] = Field(min_length=1, max_length=100)
    """The values that are carried over, each with its label."""


class Behaviour(Model):
    """Keys of both failovers."""

    purge_mode: AnyPurgeMode = PurgeMode.GRACEFULLY
    """Directly: the old copy goes first. Gracefully: when the new ones are Healthy. Never: a person removes it. The
    words Immediately and Graciously are read, too."""
    grace_period_seconds: Annotated[int, Field(json_schema_extra={"minimum": 1})] | None = None
    """The time for which Gracefully waits; 600 by default. Only with Gracefully."""
    on_grace_expired: OnGraceExpired | None = None
    """`Keep` or `Purge`: the end of the old copy when its grace period is over. Default: that of the rule."""
    block_predecessor_seconds: AtLeastZero | None = 600
    """The time for which the cluster that was left gets no new copy. 0: without end. null: not blocked."""
    state_preservation: StatePreservation | None = None
    """State that is carried over, with purgeMode Directly and into a single new cluster."""

    @property
    def grace_seconds(self) -> int | None:
        """Seconds for which the old copy waits for the new ones; None: it does not wait for them."""
        if self.purge_mode is not PurgeMode.GRACEFULLY:
            return None
        return 600 if self.grace_period_seconds is None else self.grace_period_seconds

    @property
    def preserves(self) -> bool:
        """True if state is carried over."""
        return self.state_preservation is not None and self.purge_mode is PurgeMode.DIRECTLY


class PreConditions(Model):
    """Conditions on a cluster before a failure there counts. All of them must hold."""

    delay_seconds: AtLeastZero | None = None
    """Since the copy's status was first seen."""
    healthy_state: Literal["Healthy"] | None = None
    """It has once been Healthy."""


def _listed(value: object) -> object:
    """One state may be written without a list around it."""
    return tuple(value) if isinstance(value, list) else (value,)


BadStates = Annotated[tuple[Health, ...], BeforeValidator(_listed), Field(min_length=1, max_length=2)]


class DecisionConditions(Model):
    """Conditions under which a bad copy counts as failed."""

    toleration_seconds: AtLeastZero = 300
    """The time for which the copy must be bad without a break. 0: it leaves at once; one that replaces a bad copy, or
    has come back, and is bad itself waits 10 s, and the next ones twice as long each time, up to 320 s, until one was
    well for ten minutes."""
    healthy_state: BadStates = (Health.UNHEALTHY,)
    """The states of health by which a copy or cluster counts as bad."""


class ApplicationFailover(Behaviour):
    """For copies that are bad on a cluster that is not."""

    pre_conditions: PreConditions | None = None
    """Conditions that must hold before a failure counts. Default: none."""
    decision_conditions: DecisionConditions = DecisionConditions()
    """Conditions under which a bad copy counts as failed."""


class ClusterFailover(Behaviour):
    """For clusters that are bad."""


class Failover(Model):
    """Failures that move a workload. One that is not given is off."""

    application: ApplicationFailover | None = None
    """Failure of a copy on a cluster that is well. Needs a source of the health of copies."""
    cluster: ClusterFailover | None = None
    """Failure of the whole cluster."""


class ResourceSelector(Model):
    """Selection of workloads."""

    api_version: Short
    """Group and version of the workloads, such as `apps/v1`."""
    kind: Short
    """The kind of the workload, as `Deployment`."""
    namespace: KubeName | None = None
    """Only workloads of this namespace are selected. Default: those of any."""
    name: KubeName | None = None
    """Only workloads called so are selected. Default: those of any name."""
    label_selector: LabelSelector | None = None
    """Only workloads that have such labels are selected."""


class Policy(Model):
    """The spec of a Karmada PropagationPolicy or ClusterPropagationPolicy, as far as it is about placing and moving."""

    resource_selectors: tuple[ResourceSelector, ...] = Field(default=(), max_length=Many)
    """The workloads that this rule is about: those that one of these selects."""
    placement: Placement = Placement()
    """The clusters that may have their copies, and the replicas of each."""
    failover: Failover | None = None
    """Failures that move them. None: none do."""
    propagate_deps: bool | None = None
    """`true`: what a workload needs (ConfigMaps, Secrets, ServiceAccounts, PVC claims) goes along. Default: with
    application failover it does."""
    association: bool | None = None
    """Karmada's older word for propagateDeps. Not carried out."""
    dependent_overrides: tuple[Text, ...] = ()
    """Karmada's. Not carried out."""
    priority: int = 0
    """Karmada's. Not carried out."""
    preemption: Literal["Always", "Never"] = "Never"
    """Karmada's. Not carried out."""
    scheduler_name: Text = "default-scheduler"
    """Karmada's. Not carried out."""
    conflict_resolution: Literal["Abort", "Overwrite"] = "Abort"
    """Karmada's. Not carried out."""
    activation_preference: Literal["Lazy"] | None = None
    """Karmada's. Not carried out."""
    preserve_resources_on_deletion: bool | None = None
    """Karmada's. Not carried out."""
    schedule_priority: Mapping[str, Any] | None = None
    """Karmada's. Not carried out."""
    suspension: Mapping[str, Any] = {}
    """Karmada's: a policy that is suspended is refused."""

    @property
    def copies_deps(self) -> bool:
        """True if dependencies go along."""
        moves_applications = self.failover is not None and self.failover.application is not None
        return moves_applications if self.propagate_deps is None else self.propagate_deps

    @property
    def strategy(self) -> Strategy:
        """Division of replicas, in one word."""
        scheduling = self.placement.replica_scheduling
        return "duplicated" if scheduling is None else scheduling.strategy


class BehaviourAdditions(Model):
    """Keys that Karmada's API refuses in a policy, for a failover that the policy has."""

    purge_mode: AnyPurgeMode | None = None
    """In the place of the policy's: Never for clusters, which Karmada's API refuses."""
    grace_period_seconds: Annotated[int, Field(json_schema_extra={"minimum": 1})] | None = None
    """The time for which Gracefully waits, in the place of the policy's."""
    on_grace_expired: OnGraceExpired | None = None
    """`Keep` or `Purge`: the end of the old copy when its grace period is over. Default: that of the rule."""
    block_predecessor_seconds: AtLeastZero | None = 600
    """The time for which the cluster that was left gets no new copy. 0: without end. null: not blocked."""


class DecisionAdditions(Model):
    """Conditions under which a bad copy counts as failed, without the time."""

    healthy_state: BadStates
    """The states of health by which a copy or cluster counts as bad."""


class ApplicationAdditions(BehaviourAdditions):
    """For copies that are bad on a cluster that is not."""

    decision_conditions: DecisionAdditions | None = None
    """Conditions under which a copy counts as failed. Default: while it is Unhealthy."""

    pre_conditions: PreConditions | None = None
    """Conditions that must hold before a failure counts. Default: none."""


class FailoverAdditions(Model):
    """Goes on top of what the policies say. A failover that a policy does not have stays off."""

    application: ApplicationAdditions | None = None
    """For policies with application failover."""
    cluster: BehaviourAdditions | None = None
    """For policies with cluster failover."""


class PolicySelection(Model):
    """Policies of a Karmada control plane that are honoured unchanged."""

    selector: Selector
    """The policies that are selected, by their labels."""
    failover: FailoverAdditions = FailoverAdditions()
    """Keys that Karmada's API has no place for."""


class WorkloadFailover(Rule, Policy):
    """Takes a workload off failed clusters and places it on others."""

    kind: Literal["WorkloadFailover"]
    carrier: Carrier = "Kubernetes"
    """Kubernetes: the reactor copies, scales and removes. Karmada: it writes taints and bindings, and Karmada does."""
    policies: PolicySelection | None = None
    """Carrier Karmada: all other keys come from the policies on the control plane."""
    on_insufficient: OnInsufficient = OnInsufficient.KEEP
    """Fewer landing places than clusters to leave. Keep: nothing moves. Partial: what can, does."""
    on_grace_expired: OnGraceExpired = OnGraceExpired.KEEP
    """The new copies are not all Healthy in time. Keep: the old one goes only if another is Healthy. Purge: it goes
    unless it is the last Healthy one."""
    backoff: RecoveryBackoff = RecoveryBackoff()
    """A longer wait than recoverySeconds for a cluster that has failed again soon after its recovery: it gets no copies
    meanwhile, unless no other can take them, and a copy that leaves it does not turn back. Only where it is written, if
    only as `backoff: {}`."""

    @property
    def default_peers(self) -> tuple[str, ...]:
        """All clusters."""
        return ("cluster/*",)

    @property
    def limited_by_default(self) -> bool:
        """A mistake could empty every cluster."""
        return True

    @property
    def backs_off(self) -> bool:
        """True if a cluster that fails again has to wait longer."""
        return "backoff" in self.model_fields_set
