"""Placement of copies and replicas: the `placement` of a Karmada policy.

Values that only make sense together, and numbers below their bounds, are findings of `checks`, so that all
mistakes of a policy are told at once. Shapes: Karmada's CRDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rules.rulefile import selectors
from rules.rulefile.fields import ClusterName, Model, Short

Text = Annotated[str, StringConstraints(max_length=1024)]
AtLeastZero = Annotated[float, Field(json_schema_extra={"minimum": 0})]
"""Seconds. Bounds are checked with everything else."""
Groups = Annotated[int, Field(json_schema_extra={"minimum": 0})]
Many = 1000
"""Largest number of entries of a list."""


class OnInsufficient(StrEnum):
    """Reaction to fewer landing places than clusters to leave."""

    KEEP = "Keep"
    PARTIAL = "Partial"


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


class Requirement(Model):
    """One requirement of a selector."""

    key: Short
    """Of the label, or of the field."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Comparison of the label's value with `values`."""
    values: tuple[Text, ...] = Field(default=(), max_length=Many)
    """The values to compare with; with In and NotIn only."""

    @cached_property
    def parsed(self) -> selectors.ParsedRequirement:
        """As a selector in text is read."""
        return self.key, _OPERATORS[self.operator], frozenset(self.values)


class LabelSelector(Model):
    """Kubernetes' own: all of it has to hold."""

    match_labels: Mapping[str, str] = {}
    """Keys and values of labels that have to be there, all of them."""
    match_expressions: tuple[Requirement, ...] = Field(default=(), max_length=Many)
    """Requirements that the labels have to meet beside `matchLabels`, each of them."""


class FieldSelector(Model):
    """By what is known of a cluster besides its labels."""

    match_expressions: tuple[Requirement, ...] = Field(default=(), max_length=Many)
    """Keys: `provider`, `region`, `zone`."""


class ClusterAffinity(Model):
    """Selection of clusters: those that all given keys allow."""

    cluster_names: tuple[ClusterName, ...] = Field(default=(), max_length=Many)
    """Names of clusters that may be used; empty: any cluster."""
    exclude: tuple[ClusterName, ...] = Field(default=(), max_length=Many)
    """Names of clusters that are never used."""
    label_selector: LabelSelector | None = None
    """Only clusters that have such labels are used."""
    field_selector: FieldSelector | None = None
    """Of these providers, regions or zones."""


class NamedAffinity(ClusterAffinity):
    """One of several groups of clusters, tried in order."""

    affinity_name: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    """Its name, unique in the list."""


class AffinityTerm(NamedAffinity):
    """A group, and those that are used besides when it is full."""

    overflow_affinities: tuple[NamedAffinity, ...] = Field(default=(), max_length=Many)
    """Further groups, used in this order once those before them have no room."""


class Toleration(Model):
    """A taint that a workload tolerates."""

    key: Text = ""
    """The taint's key; empty: every key."""
    operator: Literal["", "Equal", "Exists"] = "Equal"
    """Exists: whatever its value. Equal: with this value."""
    value: Text = ""
    """The taint's value; with the operator Equal only."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The taint's effect; empty: every effect."""
    toleration_seconds: float | None = None
    """For how long after it was added; none: without end. Zero and less: not at all."""


class SpreadConstraint(Model):
    """Over how many groups the copies are spread."""

    spread_by_field: Literal["cluster", "region", "zone", "provider"] | None = None
    """Default, where spreadByLabel is not given either: cluster."""
    spread_by_label: Short | None = None
    """Clusters with the same value of this label are a group."""
    min_groups: Groups = 0
    """Fewer are not enough; 0: one."""
    max_groups: Groups = 0
    """More are not used; 0: any number."""

    @property
    def field(self) -> str | None:
        """The field, with its default."""
        return self.spread_by_field or (None if self.spread_by_label else "cluster")


class StaticWeight(Model):
    """The weight of some clusters."""

    target_cluster: ClusterAffinity
    """The clusters that get this weight."""
    weight: Annotated[int, Field(ge=1, le=1_000_000)]
    """Their weight, in relation to the others."""


class WeightPreference(Model):
    """The weights of Weighted."""

    static_weight_list: tuple[StaticWeight, ...] = Field(default=(), max_length=Many)
    """A cluster has the largest weight of those that name it. None is named: all are equal."""
    dynamic_weight: Literal["AvailableReplicas"] | None = None
    """Divide by the room that clusters have, in place of fixed weights."""


class ReplicaScheduling(Model):
    """Division of replicas among clusters."""

    replica_scheduling_type: Literal["Duplicated", "Divided"] = "Divided"
    """Duplicated: every chosen cluster gets the full count."""
    replica_division_preference: Literal["Aggregated", "Weighted"] = "Weighted"
    """Aggregated: on as few clusters as can be."""
    weight_preference: WeightPreference | None = None
    """For Weighted. Default: all clusters are equal."""

    @property
    def strategy(self) -> Strategy:
        """In one word."""
        if self.replica_scheduling_type == "Duplicated":
            return "duplicated"
        if self.replica_division_preference == "Aggregated":
            return "aggregated"
        dynamic = self.weight_preference is not None and self.weight_preference.dynamic_weight is not None
        return "dynamic" if dynamic else "static"


Strategy = Literal["duplicated", "static", "dynamic", "aggregated"]


class Placement(Model):
    """Placement of copies and replicas."""

    cluster_affinity: ClusterAffinity | None = None
    """The clusters that may hold copies. Default: any cluster."""
    cluster_affinities: tuple[AffinityTerm, ...] = Field(default=(), max_length=100)
    """Groups tried in order; instead of clusterAffinity."""
    cluster_tolerations: tuple[Toleration, ...] = Field(default=(), max_length=Many)
    """Besides 300 s for not-ready and for unreachable, if these do not name them."""
    spread_constraints: tuple[SpreadConstraint, ...] = Field(default=(), max_length=16)
    """Over how many clusters, regions, zones or providers."""
    replica_scheduling: ReplicaScheduling | None = None
    """`Duplicated`: each cluster gets all replicas; `Divided`: they are divided. Default: Duplicated."""
    on_insufficient: OnInsufficient | None = None
    """`Keep` or `Partial`: the reaction to too few clusters that fit. Default: that of the rule."""
    workload_affinity: Mapping[str, Any] | None = None
    """Not carried out: refused."""
