"""Spans and their traceparents, with the exporter in memory, and that nothing is done where tracing is off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bus.messages import Health, Observation
from reactor.decide.group_traces import GroupTraces
from reactor.runtime import tracing
from rules.core.group import Group
from rules.engine.decide import Decision
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import Event, backends, healthy, route, step, the_rule, unhealthy

CAME = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    found, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    with tracing.through(tracing.Exporting(provider)):
        yield found


def opened() -> tuple[Group, Observation, Decision]:
    """A group whose window is open, the observation that opened it, and the decision when it is over."""
    rule = the_rule(backends=backends("a", "b"), tolerationSeconds=10)
    events: list[Event] = [route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=10)]
    group: Group | None = None
    for event in events:
        group = step(rule, group, event[0], event).group
    assert group is not None
    observation = events[-1][1]
    assert isinstance(observation, Observation)
    assert observation.status is Health.UNHEALTHY
    return group, observation, step(rule, group, 21)


def test_what_a_window_leads_to_belongs_to_the_trace_of_what_opened_it(exporter: InMemorySpanExporter) -> None:
    group, observation, decision = opened()
    traces = GroupTraces()
    with tracing.span("observation", None) as seen:
        pass
    traces.heard([observation], [seen.traceparent], [group])
    later = observation.model_copy(update={"observed_at": at(15)})
    traces.heard([later], [None], [group])  # a refresh is not traced
    with traces.decided([decision]) as trace:
        carried = trace(decision.group)
    assert decision.actions
    observed, decided = exporter.get_finished_spans()
    assert (observed.name, decided.name) == ("observation", "decide")
    assert decided.parent is not None
    assert observed.context is not None
    assert decided.parent.span_id == observed.context.span_id
    assert decided.context is not None
    assert (
        carried
        == f"00-{observed.context.trace_id:032x}-{decided.context.span_id:016x}-{decided.context.trace_flags:02x}"
    )
    assert dict(decided.attributes or {})["reactor.rule"] == "web"


def test_a_trace_that_is_not_sampled_where_it_begins_is_not_exported_here(exporter: InMemorySpanExporter) -> None:
    with tracing.span("webhook", CAME[:-2] + "00") as span:
        assert span.traceparent is not None
        assert span.traceparent.endswith("-00")
    assert exporter.get_finished_spans() == ()


def test_a_failure_is_an_error_of_its_span(exporter: InMemorySpanExporter) -> None:
    with tracing.span("write", CAME) as span:
        span.note(outcome="Failed", failed="Conflict: it was changed")
    [one] = exporter.get_finished_spans()
    assert (one.status.is_ok, one.status.description) == (False, "Conflict: it was changed")


@pytest.mark.parametrize(
    "header", [None, "", "00-0-0-01", CAME.upper(), CAME + "\r\nX: y", "00-" + "0" * 32 + CAME[35:]]
)
def test_a_header_that_is_no_traceparent_is_not_passed_on(header: str | None) -> None:
    assert tracing.usable(header) is None
    assert tracing.usable(CAME) == CAME


def test_without_tracing_what_came_in_goes_on_and_nothing_is_made() -> None:
    with tracing.span("webhook", CAME) as outer:
        assert outer.traceparent == tracing.current() == CAME
        with tracing.span("route", None) as inner:
            assert inner.traceparent is None
    assert tracing.current() is None


def test_a_group_without_a_trace_has_none() -> None:
    group, observation, decision = opened()
    traces = GroupTraces()
    traces.heard([observation], [None], [group])
    with traces.decided([decision]) as trace:
        assert trace(group) is None


def test_the_sdk_is_not_imported_unless_it_is_asked_for() -> None:
    script = "import sys, reactor.process.app; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
