"""Judges one write to a copy of a workload, against `workload_model`."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from reactor.audit.spans import Span, merged
from tests.judge.object_history import Run
from tests.judge.spells import SEEN_WITHIN, common, covered, current, length
from tests.judge.workload_history import CopyWrite, WorkloadHistory
from tests.judge.workload_model import State, bad, failed, well

Finding = tuple[str, str]
"""A promise, and how it was broken."""


class WriteJudge:
    """One write, before the state that it meets."""

    def __init__(self, workload: WorkloadHistory, run: Run, state: State, write: CopyWrite) -> None:
        self.workload, self.run, self.state, self.write = workload, run, state, write
        self.recent = Span(write.at - SEEN_WITHIN - workload.period, write.at + run.slack)
        self.other = state.other(write.cluster)
        known = state.copies.get(write.cluster)
        self.surplus = known.surplus if known is not None and known.marked else self._surplus(self.recent)

    def findings(self) -> Iterator[Finding]:
        """Give what is wrong with it, as far as that is not a consequence of something else that is."""
        name, known = self.write.cluster, self.state.copies.get(self.write.cluster)
        match self.write.effect:
            case "nothing":
                yield "doubled", f"nothing about the copy on {name} was changed"
            case "resize":
                yield "needless", f"the size of the copy on {name} was changed"
            case "place":
                yield from self._placed() if known is None else [("doubled", f"{name} had a copy")]
            case _ if known is None:
                yield "doubled", f"{name} had no copy: {self.write.effect}"
            case "mark":
                yield from [("doubled", f"{name} was marked")] if known.marked else self._marked()
            case "unmark":
                yield from self._unmarked() if known.marked else [("doubled", f"{name} was not marked")]
            case "remove":
                yield from self._removed(marked=known.marked)

    def _placed(self) -> Iterator[Finding]:
        name = self.write.cluster
        if self.other is None or len(self.state.copies) > 1:
            yield "needless", f"a copy on {name} beside {len(self.state.copies)} others"
        elif self.workload.blocks and self.state.left.get(name):
            yield "needless", f"{name} was left before, and is blocked"
        else:
            yield from self._founded(self.other, self.recent)

    def _marked(self) -> Iterator[Finding]:
        name = self.write.cluster
        # The mark of one that has just come back may have been on its way: it is taken off, and this one is too many.
        back = self.surplus is not False and self._good(self.other)
        if self.other is None or (self.state.copies[self.other].marked and not back):
            yield "last-one", f"no copy stays when the one on {name} leaves"
        elif self.surplus is not True:
            yield from self._founded(name, self.recent)

    def _unmarked(self) -> Iterator[Finding]:
        name, surplus = self.write.cluster, self.state.copies[self.write.cluster].surplus
        back = self._good(name)
        needed = self.other is not None and self._failed(self.other, self.recent)
        if not (back and surplus is not True) and not (needed and surplus is not False):
            why = "which is one too many" if surplus else "which is bad"
            yield "needless" if surplus else "blind", f"the copy on {name} was to stay after all, {why}"

    def _removed(self, *, marked: bool) -> Iterator[Finding]:
        name = self.write.cluster
        if self.other is None:
            yield "last-one", f"the copy on {name} was removed, and there was no other one"
        elif not self._good(self.other):
            what = f"the copy on {name} was removed, and the one on {self.other} was bad"
            yield "last-one" if self._good(name) else "blind", what
        elif not marked and self._surplus(self._ordered()) is not True:
            yield from self._founded(name, self._ordered())

    def _ordered(self) -> Span:
        """Time in which it may have been told to leave: a mark that a trouble kept away is not written later."""
        began = max(copy.since for copy in self.state.copies.values())
        since = Span(began, self.write.at)
        ago = min((one.begin for one in merged(self.run.troubles) if one.meets(since)), default=inf)
        return Span(min(self.recent.begin, max(ago, began) - SEEN_WITHIN), self.recent.end)

    def _surplus(self, when: Span) -> bool | None:
        """True if it leaves as one too many, False as a bad one (or wrongly); None: both are possible."""
        name, known = self.write.cluster, self.state.copies.get(self.write.cluster)
        if known is None or self.other is None or self.state.copies[self.other].since > known.since:
            return False
        since = Span(known.since - SEEN_WITHIN, when.end)
        if not common([since], well(self.workload, self.state, self.other)):
            return False
        return None if self._failed(name, when) else True

    def _good(self, cluster: str | None) -> bool:
        return cluster is not None and bool(common([self.recent], well(self.workload, self.state, cluster)))

    def _failed(self, cluster: str, when: Span) -> bool:
        return bool(common([when], failed(self.workload, self.run, self.state, cluster)))

    def _founded(self, cluster: str, when: Span) -> Iterator[Finding]:
        """Give what is wrong with leaving this cluster, or replacing its copy, by a decision of that time."""
        at, spells = self.write.at, bad(self.workload, self.state, cluster)
        if not self._failed(cluster, when):
            now = current(spells, at)
            ended = [one for one in spells if one.end <= at]
            if now is not None:
                yield "early", f"{cluster} was bad for {at - now.begin:.3f} s of {self.workload.toleration:g} s"
                return
            ago = f"good for {at - ended[-1].end:.3f} s, after {length(ended[-1])}" if ended else "always good"
            yield "needless", f"{cluster} was {ago} of {self.workload.toleration:g} s"
            return
        over = [one for one in failed(self.workload, self.run, self.state, cluster) if one.begin <= at]
        if self.workload.dark and over and covered(Span(over[-1].begin, self.recent.end), self.workload.blind):
            yield "blind", f"nothing had looked at {cluster} since the toleration was over"
