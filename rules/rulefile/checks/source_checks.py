"""Checks of a source that watches a cluster, as a whole, beyond those of single fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rules.core.errors import Problem
from rules.rulefile.sources import ClusterProbe, LeaseWatch, Quorum, WorkloadWatch
from rules.rulefile.targets import check_template, matches
from rules.rulefile.yaml import Document, Path

if TYPE_CHECKING:
    from rules.rulefile.sources import LoadedSource

READING_SECONDS = 2.0
"""Longest time in seconds of a reading of a ClusterProbe: four tries, 500 ms apart."""


def source(item: LoadedSource, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one source."""
    if isinstance(item, ClusterProbe):
        yield from _cluster_probe(item, document, at)
    elif isinstance(item, LeaseWatch):
        yield from _lease_watch(item, document, at)
    elif isinstance(item, WorkloadWatch):
        yield from _workload_watch(item, document, at)
    elif isinstance(item, Quorum):
        yield from _quorum(item, document, at)


def _cluster_probe(item: ClusterProbe, document: Document, at: Path) -> Iterator[Problem]:
    if unknown := check_template(item.target) - {"cluster"}:
        message = f"a ClusterProbe gives the label cluster only, not {{{min(unknown)}}}"
        yield document.problem((*at, "target"), message)
    if item.every_seconds < READING_SECONDS:
        message = f"a reading that fails takes {READING_SECONDS:g} s, so readings will be further apart than this"
        yield document.problem((*at, "everySeconds"), message, severity="warning")


def _lease_watch(item: LeaseWatch, document: Document, at: Path) -> Iterator[Problem]:
    if item.monitor_seconds >= item.grace_seconds:
        message = f"must be less than graceSeconds ({item.grace_seconds:g}), or silence is noticed a whole grace late"
        yield document.problem((*at, "monitorSeconds"), message)
    if not check_template(item.target) & {"name", "namespace"}:
        message = "all Leases would be about one target: use {name}, which is the Lease's"
        yield document.problem((*at, "target"), message, severity="warning")


def _workload_watch(item: WorkloadWatch, document: Document, at: Path) -> Iterator[Problem]:
    for index, kind in enumerate(item.kinds):
        if kind in item.kinds[:index]:
            yield document.problem((*at, "kinds", index), "is given twice")
    if item.health is not None and (item.health.lua is None) == (item.health.cel is None):
        yield document.problem((*at, "health"), "needs either lua or cel")


def _quorum(item: Quorum, document: Document, at: Path) -> Iterator[Problem]:
    if labels := check_template(item.target):
        message = f"a Quorum is about one target and has no labels to put into {{{min(labels)}}}: write it out"
        yield document.problem((*at, "target"), message)
    elif matches(item.members, item.target):
        message = f"{item.target} would be a member of itself: narrow members"
        yield document.problem((*at, "members"), message)
    if item.unhealthy_at in (0, "0%"):
        yield document.problem((*at, "unhealthyAt"), "must be more than 0, or it would never be Healthy")
    percentage = isinstance(item.unhealthy_at, str)
    if percentage and item.rounding is None:
        message = "required with a percentage: 55% of 3 members is 1 rounded Down, and 2 rounded Up"
        yield document.problem((*at, "rounding"), message)
    if not percentage and item.rounding is not None:
        yield document.problem((*at, "rounding"), "only goes with a percentage: remove it")
