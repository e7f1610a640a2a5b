"""Trace of each group's next action: that of the newest traced fact about it, which opened its window.

Kept in memory: a window whose decider is replaced goes on without its trace.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from bus.messages import Fact
from reactor.decide.encoder import Trace
from reactor.runtime import tracing
from rules.core.group import Group
from rules.engine.decide import Decision

KEPT_MAX = 10_000
_Key = tuple[str, str]
_Name = TypeVar("_Name", _Key, str)


def untraced(_: Group) -> str | None:
    """None: no group has a trace."""
    return None


class GroupTraces:
    """Traces of the groups of one partition."""

    def __init__(self) -> None:
        self._by_target: OrderedDict[str, str] = OrderedDict()
        """Of facts of which no group took note at once: windows that wait for older facts."""
        self._by_group: OrderedDict[_Key, str] = OrderedDict()

    def heard(self, facts: Sequence[Fact], traces: Sequence[str | None], groups: Iterable[Group]) -> None:
        """Take note of what was read, and of the groups that it concerned. `traces`: the traceparent of each fact."""
        found = {fact.about: trace for fact, trace in zip(facts, traces, strict=True) if trace is not None}
        if not found:
            return
        for target, trace in found.items():
            _keep(self._by_target, target, trace)
        for group in groups:
            if (known := _of(group, found)) is not None:
                _keep(self._by_group, (group.rule, group.object), known)

    def of(self, group: Group) -> str | None:
        """Give the traceparent of what happened to a group last; None: it came without one."""
        known = self._by_group.get((group.rule, group.object))
        return known if known is not None or not self._by_target else _of(group, self._by_target)

    @contextmanager
    def decided(self, decisions: Iterable[Decision]) -> Iterator[Trace]:
        """Open a span for each decision while the block runs; gives what its messages carry."""
        carried: dict[_Key, str | None] = {}
        with ExitStack() as spans:
            for one in decisions:
                group, action = one.group, one.actions[0]
                span = spans.enter_context(
                    tracing.span(
                        "decide", self.of(group), rule=group.rule, object=group.object, action=type(action).__name__,
                        id=action.id, because=action.because,
                    )
                )  # fmt: skip
                carried[group.rule, group.object] = span.traceparent
            yield lambda group: carried.get((group.rule, group.object)) or self.of(group)


def _of(group: Group, found: dict[str, str] | OrderedDict[str, str]) -> str | None:
    names = (*group.members, group.object)
    return next((found[name] for name in names if name in found), None)


def _keep(kept: OrderedDict[_Name, str], key: _Name, trace: str) -> None:
    kept[key] = trace
    kept.move_to_end(key)
    while len(kept) > KEPT_MAX:
        kept.popitem(last=False)
