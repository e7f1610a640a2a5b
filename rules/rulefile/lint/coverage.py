"""Which sources are about which targets, and who listens: what sources could feed, and what rules wait for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rules.rulefile.guards import FileGuard, Guards
from rules.rulefile.isolation import ZoneIsolation
from rules.rulefile.model import BackendRule, RouteSelection, TrafficFailover
from rules.rulefile.overlap import is_plain, may_overlap
from rules.rulefile.placement import ClusterAffinity, Placement
from rules.rulefile.sources import EndpointsWatch, NodeWatch, Quorum, WorkloadWatch
from rules.rulefile.targets import encode_segment
from rules.rulefile.workload import ClusterTaint, WorkloadFailover
from rules.rulefile.yaml import Path

if TYPE_CHECKING:
    from rules.rulefile.model import Rule
    from rules.rulefile.sources import LoadedSource

KARMADA = "karmada"
"""The signal of a control plane's own inventory."""


class Producer(NamedTuple):
    """The targets that a source publishes."""

    target: str
    """A template; labels that are known beforehand are filled in."""
    signal: str
    source: LoadedSource | None = None
    """None: the inventory of a Karmada control plane."""


class FeedNeed(NamedTuple):
    """The targets that a rule needs observations of. One of `targets` is enough, unless each is needed."""

    at: Path
    """Within the rule."""
    targets: Mapping[str, Path]
    """Targets or patterns, each with its place within the rule."""
    each: bool = False
    so: str = "it is never ready"
    """What follows for one without a source, where each is needed."""


class Consumer(NamedTuple):
    """A rule, guard or Quorum that uses observations."""

    target: str
    """A target or a pattern."""
    signals: tuple[str, ...] | None = None
    """None: all."""


_PLACE = re.compile(r"\{[^{}]*\}")
"""A name of the route, which may be any."""


class Producers:
    """All feeds, so that thousands of readers find theirs among thousands."""

    def __init__(self, feeds: Iterable[Producer]) -> None:
        self._all = list(feeds)
        self._open = [feed for feed in self._all if not is_plain(feed.target)]
        self._named: dict[str, list[Producer]] = {}
        for feed in self._all:
            if is_plain(feed.target):
                self._named.setdefault(feed.target, []).append(feed)

    def heard(self, reader: Consumer) -> list[Producer]:
        """Give those that could say something to it."""
        near = [*self._named.get(reader.target, ()), *self._open] if is_plain(reader.target) else self._all
        return [
            feed
            for feed in near
            if (reader.signals is None or feed.signal in reader.signals) and may_overlap(reader.target, feed.target)
        ]


def feeds(sources: Iterable[LoadedSource], rules: Iterable[Rule]) -> Iterator[Producer]:
    """Give what these sources could say, and what the inventory of Karmada says where a rule needs one."""
    for source in sources:
        template = source.target
        for label in ("cluster", "namespace"):
            if value := getattr(source, label, None):
                template = template.replace(f"{{{label}}}", encode_segment(value))
        yield Producer(template, source.says, source)
        if isinstance(source, NodeWatch):
            yield Producer(f"zone/{encode_segment(source.cluster)}/{{zone}}", source.says, source)
    if any(isinstance(rule, WorkloadFailover | ClusterTaint) and rule.carrier == "Karmada" for rule in rules):
        yield Producer("cluster/{name}", KARMADA)
        yield Producer("workload/{cluster}/{namespace}/{kind}/{name}", KARMADA)


def wants(rule: Rule) -> Iterator[FeedNeed]:
    """Give what the rule has to get before it ever acts."""
    match rule:
        case TrafficFailover():
            yield _backends(rule.route, rule.backends)
        case ZoneIsolation():
            yield FeedNeed((), {rule.target(zone.name): ("zones", index) for index, zone in enumerate(rule.zones)})
        case ClusterTaint():
            yield FeedNeed(("match",), {rule.match: ("match",)})
        case WorkloadFailover():
            yield from _clusters_and_copies(rule)
        case _:
            yield FeedNeed((), dict.fromkeys(rule.default_peers, ()))


def _backends(route: RouteSelection, backends: tuple[BackendRule, ...] | None) -> FeedNeed:
    cluster = encode_segment(route.cluster)
    if backends is None:
        return FeedNeed((), {f"service/{cluster}/*/*": ()})
    targets: dict[str, Path] = {}
    for index, backend in enumerate(backends):
        namespace, _, name = backend.service.rpartition("/")
        service = encode_segment(name) if "{" not in name else name
        standard = f"service/{cluster}/{namespace or route.namespace or '*'}/{service}"
        targets[_PLACE.sub("*", backend.target or standard)] = ("backends", index)
    return FeedNeed((), targets, each=True)


def _clusters_and_copies(rule: WorkloadFailover) -> Iterator[FeedNeed]:
    failover = rule.failover
    clusters = clusters_of(rule.placement)
    if rule.policies is not None or (failover is not None and failover.cluster is not None):
        named = {f"cluster/{name}": path for name, path in _named(rule.placement)}
        so = "no copy is ever placed there. Is it misspelt?"
        yield FeedNeed((), named or {"cluster/*": ()}, each=True, so=so)
    if failover is not None and failover.application is not None:
        copies = {
            f"workload/{cluster}/{one.namespace or '*'}/{one.kind}/{one.name or '*'}": ("resourceSelectors", index)
            for index, one in enumerate(rule.resource_selectors)
            for cluster in clusters
        }
        yield FeedNeed(("failover", "application"), copies)


def clusters_of(placement: Placement) -> tuple[str, ...]:
    """Give the names of the clusters where copies may be, as segments of targets; `*` where any may be one."""
    return tuple(dict.fromkeys(name for name, _ in _named(placement))) or ("*",)


def _named(placement: Placement) -> list[tuple[str, Path]]:
    """Give each cluster where copies may be, and the place of its name; none where any may be one."""
    here: Path = ("placement", "clusterAffinities")
    affinities: list[tuple[ClusterAffinity, Path]] = []
    if placement.cluster_affinity is not None:
        affinities.append((placement.cluster_affinity, ("placement", "clusterAffinity")))
    for index, one in enumerate(placement.cluster_affinities):
        affinities.append((one, (*here, index)))
        overflow = enumerate(one.overflow_affinities)
        affinities += [(other, (*here, index, "overflowAffinities", number)) for number, other in overflow]
    if any(not one.cluster_names for one, _ in affinities):
        return []
    return [
        (encode_segment(name), (*path, "clusterNames", index))
        for one, path in affinities
        for index, name in enumerate(one.cluster_names)
    ]


def readers(rules: Iterable[Rule], sources: Iterable[LoadedSource], guards: Iterable[FileGuard]) -> Iterator[Consumer]:
    """Give all who listen to targets."""
    limited, defaults = False, dict[str, None]()
    for rule in rules:
        limited = limited or rule.limited_by_default
        defaults |= dict.fromkeys(rule.default_peers)
        signals = rule.signals
        if isinstance(rule, ZoneIsolation):
            if signals is not None:
                signals += rule.failback.signals or ()
            for pattern in rule.practice.stop_signals if rule.practice is not None else ():
                yield Consumer(pattern)
        for want in wants(rule):
            yield from (Consumer(target, signals) for target in want.targets)
        if rule.guards is not None:
            yield from (Consumer(peers, rule.signals) for peers in _peers(rule.guards, rule.default_peers))
    for guard in guards:
        yield from (Consumer(peers) for peers in _peers(guard, defaults))
    if limited:
        yield Consumer("cluster/*")  # the default guard counts them
    yield from (Consumer(source.members) for source in sources if isinstance(source, Quorum))


def _peers(guards: Guards, defaults: Iterable[str]) -> Iterator[str]:
    if guards.counts_peers:
        yield from [guards.peers] if guards.peers is not None else defaults


def lists_for(source: LoadedSource, rules: Iterable[Rule]) -> bool:
    """Whether a rule needs what the source tells besides health: zones with their nodes, copies of workloads."""
    match source:
        case NodeWatch():
            return any(isinstance(rule, ZoneIsolation) and rule.cluster_name == source.cluster for rule in rules)
        case WorkloadWatch() | EndpointsWatch():
            return any(isinstance(rule, WorkloadFailover) and rule.carrier == "Kubernetes" for rule in rules)
    return False
