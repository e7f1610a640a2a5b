"""Observations that an AlertmanagerWebhook source would have made. Pure: answers in, observations out.

Prometheus keeps what fired as `ALERTS{alertstate="firing"}`. A series that begins is taken as a post that says firing,
one that ends as one that says resolved, and they go through the receiver's own functions. What Alertmanager does in
between cannot be known: grouping delays, silences, inhibitions, labels added on the way.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import count

from bus.messages import Health, Observation
from reactor.alerts.alert import Alert, BadAlert
from reactor.alerts.recovery import agrees
from reactor.alerts.states import AlertOpinion, AlertState, health_of, speaker, take
from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.label_targets import Targets, short
from reactor.workbench.backtest.prometheus_gaps import Outages
from reactor.workbench.backtest.value_runs import ChunkResult, Series
from rules.rehearsal.simulation import at
from rules.rulefile.matchers import Matchers
from rules.rulefile.sources import AlertmanagerWebhook
from rules.rulefile.targets import check_template

FIRING = 'ALERTS{alertstate="firing"}'
_OWN_LABELS = ("__name__", "alertstate")

QueriedChunk = tuple[Chunk, range, ChunkResult]
LabelMap = Mapping[str, str]
LabelPairs = tuple[tuple[str, str], ...]


class ReplayedAlerts:
    """The alerts of one source on virtual time."""

    def __init__(self, source: AlertmanagerWebhook, outages: Outages, targets: Targets) -> None:
        """`outages`: when the Prometheus that confirms was away: then it proved nothing."""
        self._source = source
        self._outages = outages
        self._targets = targets
        texts = (source.matchers,) if isinstance(source.matchers, str) else source.matchers
        self._matchers = [Matchers.parse(text) for text in texts]
        self._used = check_template(source.target)
        self._firing: dict[LabelPairs, LabelMap] = {}
        self._states: dict[AlertOpinion, dict[str, AlertState]] = {}
        self._told: dict[AlertOpinion, tuple[Health, bool, LabelMap]] = {}

    def observations(
        self, chunks: Iterable[QueriedChunk], confirms: Iterable[QueriedChunk] | None
    ) -> Iterator[tuple[float, Observation]]:
        """Give what would have been said, with its second, in order. `confirms`: the confirm query on the same grid."""
        if confirms is None:
            for chunk, part, answer in chunks:
                yield from self._chunk(chunk, part, answer, ChunkResult((), 0))
            return
        for (chunk, part, answer), (_, _, proof) in zip(chunks, confirms, strict=True):
            yield from self._chunk(chunk, part, answer, proof)

    def _chunk(
        self, chunk: Chunk, part: range, answer: ChunkResult, proof: ChunkResult
    ) -> Iterator[tuple[float, Observation]]:
        number = count()
        todo: list[tuple[int, int, LabelMap | AlertState, bool]] = []
        for index, labels, fires in self._changes(part, answer):
            heapq.heappush(todo, (index, next(number), labels, fires))
        proofs = list(self._proofs(chunk, part, proof))
        for states in self._states.values():
            for state in states.values():
                if (index_ := _proven(state, proofs, part.start, self._used)) is not None:
                    heapq.heappush(todo, (index_, next(number), state, False))
        while todo:
            index, _, what, fires = heapq.heappop(todo)
            moment = at(chunk.second(index))
            if isinstance(what, AlertState):
                touched = self._confirm(what, moment)
            else:
                touched = self._post(what, moment, fires=fires)
            if touched is None:
                continue
            if touched.waits and (index_ := _proven(touched, proofs, index, self._used)) is not None:
                heapq.heappush(todo, (index_, next(number), touched, False))
            yield from self._say(touched.opinion, chunk.second(index), moment)

    def _changes(self, part: range, answer: ChunkResult) -> Iterator[tuple[int, LabelMap, bool]]:
        """Give where an alert begins or ends to fire, carried over from chunk to chunk."""
        before, self._firing = self._firing, {}
        there: defaultdict[LabelPairs, list[tuple[int, int]]] = defaultdict(list)
        for series in answer.series:
            labels = {name: text for name, text in series.labels.items() if name not in _OWN_LABELS}
            if all(matchers.matches(labels) for matchers in self._matchers):
                there[tuple(sorted(labels.items()))] += _inside(series, part)
        for key in sorted(there.keys() | before.keys()):
            labels, fires = dict(key), key in before
            spans = _joined(there.get(key, ()))
            if fires and part and (not spans or spans[0][0] > part.start):
                yield part.start, labels, False
                fires = False
            for first, stop in spans:
                if not (fires and first == part.start):
                    yield first, labels, True
                if stop < part.stop:
                    yield stop, labels, False
                else:
                    self._firing[key] = labels
            if not part and key in before:
                self._firing[key] = labels

    def _post(self, labels: LabelMap, moment: datetime, *, fires: bool) -> AlertState | None:
        target = self._targets.of(labels)
        times = {"startsAt": moment} if fires else {"endsAt": moment}
        try:
            alert = Alert.read({"status": "firing" if fires else "resolved", "labels": labels, **times})
        except BadAlert:
            return None  # the receiver would have put it aside as well
        if target is None:
            return None
        opinion = AlertOpinion(self._source.name, self._source.says, target)
        states = self._states.setdefault(opinion, {})
        believe = self._source.on_resolved == "Healthy"
        state, _ = take(states.get(alert.fingerprint), alert, moment, opinion=opinion, believe=believe)
        states[alert.fingerprint] = state
        return state

    def _confirm(self, waiting: AlertState, moment: datetime) -> AlertState | None:
        states = self._states.get(waiting.opinion, {})
        state = states.get(waiting.fingerprint)
        if state is None or not state.waits or state.changed_at != waiting.changed_at:
            return None  # it fired again before the proof
        states[state.fingerprint] = state.model_copy(update={"confirmed": True, "changed_at": moment})
        return states[state.fingerprint]

    def _say(self, opinion: AlertOpinion, second: float, moment: datetime) -> Iterator[tuple[float, Observation]]:
        states = self._states[opinion]
        state = speaker(states.values())
        if state is None:
            return
        # Where a confirming query is given, nothing else settles it.
        word = (health_of(state), state.waits and self._source.confirm is None, state.labels)
        if self._told.get(opinion) != word:
            self._told[opinion] = word
            yield second, Observation(
                target=opinion.target, status=word[0], signal=opinion.signal, observed_at=moment, resolved=word[1],
                labels=short(state.labels), detail=state.detail,
            )  # fmt: skip
        # What has recovered has been said, and it is not asked about again.
        for fingerprint in [one.fingerprint for one in states.values() if one.status == "resolved" and not one.waits]:
            del states[fingerprint]

    def _proofs(self, chunk: Chunk, part: range, proof: ChunkResult) -> Iterator[tuple[LabelMap, list[range]]]:
        away = list(self._outages.within(chunk, part))
        for series in proof.series:
            yield (
                series.labels,
                [piece for first, stop in _inside(series, part) for piece in _without(range(first, stop), away)],
            )


def _inside(series: Series, part: range) -> Iterator[tuple[int, int]]:
    """The spans of a series within the range."""
    for begin, end in series.spans():
        if max(begin, part.start) < min(end, part.stop):
            yield max(begin, part.start), min(end, part.stop)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch or overlap as one: several servers say the same."""
    out: list[tuple[int, int]] = []
    for first, stop in sorted(spans):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(stop, out[-1][1]))
        else:
            out.append((first, stop))
    return out


def _without(span: range, away: Iterable[range]) -> Iterator[range]:
    first = span.start
    for gap in away:
        if gap.stop <= first or gap.start >= span.stop:
            continue
        if gap.start > first:
            yield range(first, gap.start)
        first = gap.stop
    if first < span.stop:
        yield range(first, span.stop)


def _proven(
    state: AlertState, proofs: Iterable[tuple[LabelMap, list[range]]], index: int, used: Iterable[str]
) -> int | None:
    """Give the first point, not before this one, at which a series agrees with an alert that waits for its proof."""
    if not state.waits:
        return None
    found = [
        max(index, span.start)
        for labels, spans in proofs
        if agrees([labels], state.labels, used)
        for span in spans
        if span.stop > index
    ]
    return min(found, default=None)
