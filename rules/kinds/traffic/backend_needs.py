"""The targets that a TrafficFailover needs observations of: its backends."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.feeds import FeedNeed
from rules.rulefile.targets import encode_segment
from rules.rulefile.yaml import Path

_PLACE = re.compile(r"\{[^{}]*\}")
"""A name of the route, which may be any."""


def needs(rule: TrafficFailover) -> Iterator[FeedNeed]:
    """Give the targets of its backends: each is needed."""
    route, backends = rule.route, rule.backends
    cluster = encode_segment(route.cluster)
    if backends is None:
        yield FeedNeed((), {f"service/{cluster}/*/*": ()})
        return
    targets: dict[str, Path] = {}
    for index, backend in enumerate(backends):
        namespace, _, name = backend.service.rpartition("/")
        service = encode_segment(name) if "{" not in name else name
        standard = f"service/{cluster}/{namespace or route.namespace or '*'}/{service}"
        targets[_PLACE.sub("*", backend.target or standard)] = ("backends", index)
    yield FeedNeed((), targets, each=True)
