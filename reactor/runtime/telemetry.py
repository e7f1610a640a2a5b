"""Our own metrics and logs. No target, object or label value is ever a label of a metric: rules and reasons are few,
targets are not."""

from __future__ import annotations

import json
import logging
import platform
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from reactor.runtime.installed_versions import installed
from reactor.runtime.lines import LineHandler, Lines
from reactor.runtime.redaction import redact
from reactor.runtime.rule_series import RuleSeries
from reactor.runtime.visible import visible, visible_json

REGISTRY = CollectorRegistry()
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

webhook_posts = Counter("reactor_webhook_posts", "Webhook posts by answer.", ["source", "code"], registry=REGISTRY)
webhook_alerts = Counter(
    "reactor_webhook_alerts", "Alerts by what became of them: taken, repeated, unmatched, quarantined.",
    ["source", "fate"], registry=REGISTRY,
)  # fmt: skip
malformed_requests = Counter(
    "reactor_malformed_requests", "What came to the HTTP ports and is no HTTP request.", registry=REGISTRY
)
webhook_truncated = Counter(
    "reactor_webhook_truncated_alerts", "Alerts that Alertmanager left out of its posts.", ["source"], registry=REGISTRY
)
webhook_seconds = Histogram(
    "reactor_webhook_seconds", "Time to answer a post.", ["source"], buckets=_SECONDS, registry=REGISTRY
)
webhook_limits = Counter("reactor_webhook_limits_exceeded", "Posts refused at a limit.", ["limit"], registry=REGISTRY)
connections = Gauge(
    "reactor_connections", "Connections open, by listener: receiver, health.", ["listener"], registry=REGISTRY
)
connections_closed = Counter(
    "reactor_connections_closed",
    "Connections closed at a limit, by what they were: half-open, idle, or refused as a new one.",
    ["listener", "limit", "fate"], registry=REGISTRY,
)  # fmt: skip
observations = Counter("reactor_observations", "Observations published.", ["source", "status"], registry=REGISTRY)
source_errors = Counter(
    "reactor_source_errors", "Readings that gave no answer, by reason.", ["source", "reason"], registry=REGISTRY
)
targets_refused = Counter(
    "reactor_targets_refused", "Observations of targets that were refused: the source has too many.", ["source"],
    registry=REGISTRY,
)  # fmt: skip
observations_delayed = Counter(
    "reactor_observations_delayed", "What publishers on the bus said too fast, and waits for its turn.",
    registry=REGISTRY,
)  # fmt: skip
alerts_refused = Counter(
    "reactor_alerts_refused", "Alerts that were refused: the source has too many.", ["source"], registry=REGISTRY
)
prometheus_warnings = Counter(
    "reactor_prometheus_warnings", "Warnings that came with answers to queries.", ["prometheus"], registry=REGISTRY
)
loop_failures = Counter(
    "reactor_loop_failures", "Times that a loop which should run without end ended and was started again.",
    ["loop", "reason"], registry=REGISTRY,
)  # fmt: skip
quarantined = Counter("reactor_quarantined_messages", "Messages that could not be read.", ["stream"], registry=REGISTRY)
facts = Counter("reactor_facts", "Facts decided on.", ["kind"], registry=REGISTRY)
decisions = Counter("reactor_decisions", "Decisions that asked for something.", ["rule", "because"], registry=REGISTRY)
holds = Counter("reactor_holds", "Times that a rule began to hold.", ["rule", "reason"], registry=REGISTRY)
held = RuleSeries("reactor_held", "Objects for which a rule holds now.", ["rule", "reason"], registry=REGISTRY)
rule_state = RuleSeries("reactor_rule_state", "Objects of a rule in each state.", ["rule", "state"], registry=REGISTRY)
failed_over = RuleSeries(
    "reactor_failed_over", "Objects of a rule that are away from where they belong: traffic, copies, zones, taints.",
    ["rule"], registry=REGISTRY,
)  # fmt: skip
targets = RuleSeries(
    "reactor_targets", "Targets of a rule's objects, by status: a target of two objects counts twice.",
    ["rule", "status"], registry=REGISTRY,
)  # fmt: skip
build_info = Gauge("reactor_build_info", "1, with the versions as labels.", ["version", "python"], registry=REGISTRY)
refresh_requests = Counter(
    "reactor_refresh_requests", "Requests to a source to look again, as evidence was missing.", ["source"],
    registry=REGISTRY,
)  # fmt: skip
loop_lag = Histogram(
    "reactor_loop_lag_seconds", "How late the event loop comes to what is due.", buckets=_SECONDS, registry=REGISTRY
)
gc_pause = Histogram(
    "reactor_gc_pause_seconds", "Pauses of the garbage collector, by generation.", ["generation"], buckets=_SECONDS,
    registry=REGISTRY,
)  # fmt: skip
slots_refused = Counter(
    "reactor_action_slots_refused",
    "Actions that went back to the queue, as whom they write to has no slot free (busy) or did not answer (silent).",
    ["peer", "reason"], registry=REGISTRY,
)  # fmt: skip
decision_seconds = Histogram(
    "reactor_decision_seconds", "Time from a fact's storage on the bus until it is decided on, of each batch's oldest.",
    buckets=_SECONDS, registry=REGISTRY,
)  # fmt: skip
decide_seconds = Histogram("reactor_decide_seconds", "Time to decide.", buckets=_SECONDS, registry=REGISTRY)
actions = Counter("reactor_actions", "Actions by outcome.", ["rule", "action", "status"], registry=REGISTRY)
action_seconds = Histogram(
    "reactor_action_seconds", "Time from decision to outcome.", ["action"], buckets=_SECONDS, registry=REGISTRY
)
open_windows = Gauge(
    "reactor_open_windows", "Windows of targets that wait for their toleration or recovery.", registry=REGISTRY
)
partitions_owned = Gauge("reactor_partitions_owned", "Partitions that this process decides for.", registry=REGISTRY)
bus_up = Gauge("reactor_bus_up", "1 while a write probe succeeds.", registry=REGISTRY)
clock_difference = Gauge(
    "reactor_clock_difference_seconds", "How far the bus's clock is ahead of this machine's.", registry=REGISTRY
)
clock_skew = Gauge(
    "reactor_clock_skew_bound_seconds",
    "The most by which this process's time may differ from the bus's: as measured, half a round trip, and drift.",
    registry=REGISTRY,
)
rule_files_invalid = Gauge(
    "reactor_rule_files_invalid", "1 while the rule files on the disk cannot be used, and older rules go on.",
    registry=REGISTRY,
)  # fmt: skip
rule_reloads = Counter(
    "reactor_rule_reloads", "Looks at changed rule files: changed, unchanged, invalid, failed.", ["result"],
    registry=REGISTRY,
)  # fmt: skip
rule_problems = RuleSeries(
    "reactor_rule_problems", "Objects of a rule that a person has to mend: see its status.", ["rule"], registry=REGISTRY
)
log_lines_dropped = Counter(
    "reactor_log_lines_dropped", "Log lines that were dropped: stderr was full, closed, or on a full disk.",
    registry=REGISTRY,
)  # fmt: skip
watch_restarts = Counter(
    "reactor_watch_restarts", "Watches that had to start again.", ["cluster", "reason"], registry=REGISTRY
)
threads_waiting = Gauge(
    "reactor_threads_waiting", "Calls that wait for a thread, by what for.", ["purpose"], registry=REGISTRY
)
open_watches = Gauge("reactor_open_watches", "Watches of Kubernetes APIs now open.", ["cluster"], registry=REGISTRY)
lists_doubted = Counter(
    "reactor_lists_doubted", "Lists of a cluster's API that are not believed: they lack too much, or what is there.",
    ["cluster"], registry=REGISTRY,
)  # fmt: skip

ProcessCollector(registry=REGISTRY)  # process_*: CPU, memory, descriptors, start


def say_versions() -> None:
    """Let the metrics say what runs."""
    build_info.clear()
    build_info.labels(installed("alert-reactor"), platform.python_version()).set(1)


class _Formatter(logging.Formatter):
    """logfmt or JSON; whatever a caller adds as `extra={"rule": …}` becomes a key."""

    _KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

    def __init__(self, style: Literal["logfmt", "json"]) -> None:
        super().__init__()
        self._json = style == "json"

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        fields |= {k: v for k, v in record.__dict__.items() if k not in self._KNOWN and v is not None}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if self._json:
            return redact(visible_json(json.dumps(fields, default=str, ensure_ascii=False)))
        return redact(" ".join(f"{key}={_quoted(_text(value))}" for key, value in fields.items()))


def _text(value: object) -> str:
    """`checkout=0 checkout-west=1` of weights, else what it says of itself."""
    if isinstance(value, Mapping):
        return " ".join(f"{key}={one}" for key, one in value.items())
    return str(value)


def _quoted(text: str) -> str:
    plain = re.fullmatch(r"[^\s\"=]+", text) and text.isprintable()
    return text if plain else visible(json.dumps(text, ensure_ascii=False))


def start_logging(style: Literal["logfmt", "json"], level: str, stream: TextIO | None = None) -> Lines:
    """Send all logs to stderr, or to this file, in one form, through one redaction; give what writes them."""
    lines = Lines(stream or sys.stderr, log_lines_dropped.inc)
    handler = LineHandler(lines)
    handler.setFormatter(_Formatter(style))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("apscheduler").setLevel("WARNING")  # it tells of every run of every probe
    logging.getLogger("stamina").setLevel(logging.ERROR)  # it tells of every try; what fails in the end, we tell
    return lines
