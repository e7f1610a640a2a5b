"""Checks of a ZoneIsolation as a whole, and of all together, beyond those of single fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rules.core.errors import Problem
from rules.kinds.zone.model import AwsNetworkAcl, NoNetwork, StepName, Zone, ZoneIsolation
from rules.rulefile.checks import query_checks
from rules.rulefile.file_kind import Located
from rules.rulefile.sources import LoadedSource
from rules.rulefile.yaml import Document, Path

_AWS_ID = re.compile(r"[a-z]{2,5}[0-9]-az[0-9]+")
_AWS_CODE = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9][a-z]")


def rule(item: ZoneIsolation, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one rule."""
    yield from _carrier(item, document, at)
    for index, zone in enumerate(item.zones):
        yield from _zone(item, zone, index, document, at)
    yield from _steps(item, document, at)
    yield from _signals(item, document, at)
    if item.verify is not None:
        yield from query_checks.query(item.verify.query, document, (*at, "verify", "query"))
    yield from _practice(item, document, at)


def together(rules: Sequence[Located[ZoneIsolation]], _sources: Sequence[LoadedSource]) -> Iterator[Problem]:
    """Two rules for one cluster would isolate two zones, each of them the only one that it knows of."""
    first: dict[str, str] = {}
    for item, document, at in rules:
        key = "cluster" if item.cluster is not None else "shoot"
        names = [name for name in (item.object, item.cluster_name) if name]
        taken = next((name for name in names if name in first), None)
        if taken is not None:
            message = f"{first[taken]!r} isolates zones of {taken} already: one rule for one cluster"
            yield document.problem((*at, key), message)
        for name in names:
            first.setdefault(name, item.name)


def _carrier(item: ZoneIsolation, document: Document, at: Path) -> Iterator[Problem]:
    if item.carrier == "Gardener":
        if item.shoot is None:
            yield document.problem((*at, "carrier"), "Gardener needs shoot: {namespace, name}")
        for index, zone in enumerate(item.zones):
            if zone.id is None:
                yield document.problem((*at, "zones", index), "Gardener needs the zone's id: a Shoot is told by it")
        return
    if item.cluster is None:
        yield document.problem(at, "cluster is required: its name in the settings")
    for key, value in (("shoot", item.shoot), ("seed", item.seed)):
        if value is not None:
            yield document.problem((*at, key), "only goes with carrier: Gardener")


def _zone(item: ZoneIsolation, zone: Zone, index: int, document: Document, at: Path) -> Iterator[Problem]:
    here: Path = (*at, "zones", index)
    others = item.zones[:index]
    if zone.name in [other.name for other in others]:
        yield document.problem((*here, "name"), f"{zone.name!r} is given twice")
    if zone.id is not None and zone.id in [other.id for other in others]:
        yield document.problem((*here, "id"), f"{zone.id!r} is given twice")
    if _AWS_ID.fullmatch(zone.name) or zone.name in [other.id for other in item.zones if other is not zone]:
        message = f"{zone.name!r} is a zone's id; nodes carry the name, such as eu-central-1a. Write the id under id"
        yield document.problem((*here, "name"), message)
    elif isinstance(item.network, AwsNetworkAcl) and not zone.name.startswith(item.network.region):
        message = f"{zone.name!r} is no zone of {item.network.region}, the region of network"
        yield document.problem((*here, "name"), message)
    if zone.id is not None and _AWS_CODE.fullmatch(zone.id):
        message = f"{zone.id!r} is a zone's name, another zone in every account; its id is such as euc1-az1"
        yield document.problem((*here, "id"), message)
    if zone.id is None and isinstance(item.network, AwsNetworkAcl):
        yield document.problem(here, "AwsNetworkAcl needs the zone's id: a name is another zone in every account")
    for number, target in enumerate(zone.targets):
        if target.startswith("zone/"):
            message = "a zone is no target of our traffic rules: list the services that are served from it"
            yield document.problem((*here, "targets", number), message)


def _steps(item: ZoneIsolation, document: Document, at: Path) -> Iterator[Problem]:
    known = list(StepName)
    for index, (before, step) in enumerate(zip(item.steps, item.steps[1:], strict=False), start=1):
        if known.index(step) <= known.index(before):
            message = f"must be before {before}; the order is {', '.join(known)}, each once"
            yield document.problem((*at, "steps", index), message)
    if StepName.EVACUATE in item.steps and StepName.FENCE not in item.steps:
        message = "Evacuate without Fence: pods would come straight back. Add Fence"
        yield document.problem((*at, "steps"), message)
    if not isinstance(item.network, NoNetwork) and StepName.CUT_NETWORK not in item.steps:
        message = "is never cut: steps has no CutNetwork"
        yield document.problem((*at, "network"), message, severity="warning")
    for step in item.step_timeout_seconds:
        if step not in item.steps:
            message = "means nothing: it is none of the steps"
            yield document.problem((*at, "stepTimeoutSeconds", step.value), message, severity="warning")


def _signals(item: ZoneIsolation, document: Document, at: Path) -> Iterator[Problem]:
    if item.signals is not None and len(item.signals) < 2:
        message = "one signal alone never isolates a zone: two are needed, or a person"
        yield document.problem((*at, "signals"), message, severity="warning")
    cuts = not isinstance(item.network, NoNetwork) and StepName.CUT_NETWORK in item.steps
    if cuts and item.failback.signals is None:
        message = (
            "while the network is cut the zone's own nodes stay NotReady, and a zone that is not healthy is never "
            "opened: name two signals that see it from outside in failback.signals"
        )
        yield document.problem((*at, "network"), message, severity="warning")
    if item.guards is not None and item.guards.blocked_windows:
        message = (
            "also stop a real failover; failback.blockedWindows and practice.blockedWindows only stop what can wait"
        )
        yield document.problem((*at, "guards", "blockedWindows"), message, severity="warning")


def _practice(item: ZoneIsolation, document: Document, at: Path) -> Iterator[Problem]:
    if item.practice is None:
        return
    for index, name in enumerate(item.practice.zones):
        if item.zone(name) is None:
            message = f"the rule has no zone {name!r}"
            yield document.problem((*at, "practice", "zones", index), message)
    for index, step in enumerate(item.practice.steps):
        if step not in item.steps:
            yield document.problem((*at, "practice", "steps", index), f"{step} is none of the rule's steps")
