"""ClusterTaint: what a rule that puts taints on clusters may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bus.messages import Carrier
from rules.rulefile.fields import Model, Pattern, Short
from rules.rulefile.model import Rule


class NewTaint(Model):
    """A taint that is put on a cluster."""

    key: Short
    """The taint's key, such as `reactor/brownout`."""
    value: Annotated[str, StringConstraints(max_length=253)] = ""
    """For tolerations with the operator Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """NoExecute: workloads have to leave. NoSchedule: none may come."""


class ClusterTaint(Rule):
    """Puts taints on a cluster while it is bad, and takes them off when it is good again."""

    kind: Literal["ClusterTaint"]
    match: Pattern
    """The clusters that it is about: `cluster/east`."""
    taints: tuple[NewTaint, ...] = Field(min_length=1, max_length=100)
    """The taints that the rule puts on a cluster while it is bad."""
    carrier: Carrier = "Kubernetes"
    """Kubernetes: they are only known to the reactor's own rules. Karmada: they are put on the Cluster object, too."""

    @property
    def default_peers(self) -> tuple[str, ...]:
        """All clusters."""
        return ("cluster/*",)
