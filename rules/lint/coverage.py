"""Coverage of targets by sources: the targets that sources could feed, and those that rules wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rules.catalog import file_kind_of
from rules.rulefile.feeds import Consumer, FeedNeed, Producer
from rules.rulefile.guards import FileGuard, Guards
from rules.rulefile.model import Rule
from rules.rulefile.sources import LoadedSource, NodeWatch, Quorum
from rules.rulefile.targets import encode_segment


def feeds(sources: Iterable[LoadedSource], rules: Iterable[Rule]) -> Iterator[Producer]:
    """Give what these sources could say, and what the rules bring along without a source."""
    for source in sources:
        template = source.target
        for label in ("cluster", "namespace"):
            if value := getattr(source, label, None):
                template = template.replace(f"{{{label}}}", encode_segment(value))
        yield Producer(template, source.says, source)
        if isinstance(source, NodeWatch):
            yield Producer(f"zone/{encode_segment(source.cluster)}/{{zone}}", source.says, source)
    yield from inventories(rules)


def inventories(rules: Iterable[Rule]) -> Iterable[Producer]:
    """Give what the rules bring along without a source, each once."""
    return dict.fromkeys(one for rule in rules for one in file_kind_of(rule).inventory(rule))


def wants(rule: Rule) -> Iterable[FeedNeed]:
    """Give what the rule has to get before it ever acts."""
    return file_kind_of(rule).needs(rule)


def readers(rules: Iterable[Rule], sources: Iterable[LoadedSource], guards: Iterable[FileGuard]) -> Iterator[Consumer]:
    """Give all who listen to targets."""
    limited, defaults = False, dict[str, None]()
    for rule in rules:
        limited = limited or rule.limited_by_default
        defaults |= dict.fromkeys(rule.default_peers)
        yield from file_kind_of(rule).consumers(rule)
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
    """True if a rule needs what the source lists besides health: zones with their nodes, copies of workloads."""
    return any(file_kind_of(rule).lists(rule, source) for rule in rules)
