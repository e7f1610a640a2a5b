"""Sums up the results in each cluster to the one outcome of an action: nothing half-moved is left unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bus.messages import ActionMessage, Mode, Outcome
from reactor.actions.outcomes import DETAIL_MAX, REFUSALS, Declined
from reactor.actions.workload.copy_sources import ClusterLookup
from reactor.actions.workload.refusals import word_for
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, SettingsError


@dataclass(frozen=True, slots=True)
class Report:
    """Result in one cluster: what was written, and the error that ended it."""

    cluster: str
    """Name of the cluster; empty: it was stopped before any cluster was written to."""
    written: list[str] = field(default_factory=list)
    error: ReactorError | None = None
    standing: list[str] = field(default_factory=list)
    """Objects that earlier tries have written."""

    @property
    def text(self) -> str:
        """`member2: wrote ConfigMap/shop; then QuotaExceeded: …`."""
        names = list(dict.fromkeys((*self.standing, *self.written)))
        done = f"wrote {', '.join(names)}" if names and (self.written or self.error) else "as asked"
        if self.error is not None:
            done = f"{done}; then {word_for(self.error)}: {self.error}" if names else str(self.error)
        return f"{self.cluster}: {done}" if self.cluster else done


def outcome(action: ActionMessage, clock: Clock, reports: Sequence[Report]) -> Outcome:
    """Give Done where nothing was stopped, else the first reason that may be mended; Refused where there is none.

    Those that failed are told first: a detail that is too long is cut at its end.
    """
    words = [word_for(report.error) for report in reports if report.error is not None]
    reason = next((word for word in words if word not in REFUSALS), words[0] if words else None)
    status: Literal["Done", "Failed", "Refused"] = (
        "Done" if reason is None else "Refused" if reason in REFUSALS else "Failed"
    )
    told = sorted(reports, key=lambda report: (report.error is None, not report.written))
    return Outcome(
        action=action.id, status=status, reason=reason, detail="; ".join(one.text for one in told)[:DETAIL_MAX],
        wrote=any(report.written for report in reports), observed_at=clock.now(),
    )  # fmt: skip


def enforced(action: ActionMessage) -> None:
    """Raise Declined (DryRun) unless the action is to be carried out."""
    if action.mode is not Mode.ENFORCE:
        raise Declined("DryRun", f"mode {action.mode}: decided and recorded, not carried out")


async def connected(clusters: ClusterLookup, name: str) -> KubeApi:
    """Give a cluster's API. Raises Declined (UnknownCluster) where the settings do not tell."""
    try:
        return await clusters(name)
    except SettingsError as error:
        raise Declined("UnknownCluster", str(error)) from error
