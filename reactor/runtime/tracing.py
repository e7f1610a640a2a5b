"""Traces: spans over webhook, router, decider and executor, which a message's traceparent joins into one.

The OpenTelemetry SDK is an extra. Where no `tracing.url` is set nothing is exported, and a traceparent that came in is
only passed on.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from reactor.runtime.errors import SettingsError
from reactor.runtime.installed_versions import installed

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

FLUSH_MILLISECONDS = 500
"""Milliseconds at the end to export the remaining spans."""
EXPORT_SECONDS = 5.0
FIX = "tracing needs the extra otel: pip install 'alert-reactor[otel]'"
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_current: ContextVar[str | None] = ContextVar("traceparent", default=None)


def usable(header: str | None) -> str | None:
    """Give a traceparent of W3C Trace Context as it came in a header; None: it is none."""
    return header if header is not None and _TRACEPARENT.fullmatch(header) else None


def current() -> str | None:
    """Give the traceparent of what this task does; None: it is not traced."""
    return _current.get()


class OpenSpan(Protocol):
    """A piece of work that is being done."""

    @property
    def traceparent(self) -> str | None:
        """Trace context for a message that follows from it; None: it has none."""
        ...

    def note(self, **attributes: str | int | float | bool) -> None:
        """Add what is known by now; `failed`: why it did not succeed."""
        ...


class _Tracer(Protocol):
    def span(
        self, name: str, parent: str | None, attributes: Mapping[str, Any]
    ) -> AbstractContextManager[OpenSpan]: ...


@dataclass(slots=True)
class _PassedOn:
    """Span without tracing: the trace context that came in goes on as it is."""

    traceparent: str | None
    _token: Any = None

    def __enter__(self) -> _PassedOn:
        if self.traceparent is not None:
            self._token = _current.set(self.traceparent)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def note(self, **_: str | int | float | bool) -> None:
        """Ignore the attributes."""


class _Off:
    def span(self, _name: str, parent: str | None, _attributes: Mapping[str, Any]) -> AbstractContextManager[OpenSpan]:
        return _PassedOn(parent)


_tracer: _Tracer = _Off()


def span(name: str, parent: str | None, **attributes: str | int | float | bool) -> AbstractContextManager[OpenSpan]:
    """Open a span while the block runs. `parent`: the traceparent of what caused it; None: a trace begins here."""
    return _tracer.span(name, parent, attributes)


class Exporting:
    """Spans through the OpenTelemetry SDK."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("alert-reactor", installed("alert-reactor"))

    @contextmanager
    def span(self, name: str, parent: str | None, attributes: Mapping[str, Any]) -> Iterator[OpenSpan]:
        from opentelemetry.trace import Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        came = TraceContextTextMapPropagator().extract({"traceparent": parent} if parent else {})
        keys = {f"reactor.{key}": value for key, value in attributes.items()}
        with self._tracer.start_as_current_span(name, context=came, attributes=keys) as one:
            found = one.get_span_context()
            own = f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"

            class _Open:
                traceparent = own

                def note(self, **more: str | int | float | bool) -> None:
                    one.set_attributes({f"reactor.{key}": value for key, value in more.items()})
                    if "failed" in more:
                        one.set_status(Status(StatusCode.ERROR, str(more["failed"])))

            token = _current.set(own)
            try:
                yield _Open()
            finally:
                _current.reset(token)


@contextmanager
def exported(url: str, headers: Mapping[str, str], sample_ratio: float, instance: str) -> Iterator[None]:
    """Export spans as OTLP over HTTP while the block runs. Raises SettingsError where the extra is missing.

    `sample_ratio`: of the traces that begin here. `instance`: the name of this process.
    """
    try:
        import requests
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise SettingsError(f"{FIX} ({error})") from error
    session = requests.Session()
    session.trust_env = False  # no proxy of the environment counts for any of our clients
    resource = Resource.create({"service.name": "alert-reactor", "service.instance.id": instance})
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sample_ratio)), resource=resource, shutdown_on_exit=False
    )  # fmt: skip
    exporter = OTLPSpanExporter(url, headers=dict(headers), timeout=EXPORT_SECONDS, session=session)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)
    with through(Exporting(provider)):
        yield
    provider.force_flush(FLUSH_MILLISECONDS)
    # A collector that hangs would hold up the end: what is not out by now is lost.
    threading.Thread(target=provider.shutdown, name="end of traces", daemon=True).start()


@contextmanager
def through(tracer: _Tracer) -> Iterator[None]:
    """Make spans with this while the block runs."""
    global _tracer
    before, _tracer = _tracer, tracer
    try:
        yield
    finally:
        _tracer = before
