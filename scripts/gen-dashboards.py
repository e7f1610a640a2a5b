#!/usr/bin/env python3
"""Write the Grafana dashboards of deploy/grafana from the registry of our metrics.

What a panel asks follows from the metric's type: a gauge is summed, a counter is a rate, a histogram its p50 and p99.
Its description is the metric's own. Run it with .venv/bin/python scripts/gen-dashboards.py after a change of metrics;
tests/house/test_dashboards.py fails when they differ, or when a metric is on no dashboard.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from prometheus_client import Metric

from reactor.actions import events  # noqa: F401 - its metrics are registered
from reactor.actions.notify import notify  # noqa: F401 - its metrics are registered
from reactor.runtime import telemetry

FOLDER = ROOT / "deploy/grafana"
WIDTH, HEIGHT, COLUMNS = 8, 7, 24
RATE = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Panel:
    """One metric. `by`: the labels that it is split by. `shape`: Grafana's name of the kind of panel."""

    metric: str
    by: str = ""
    shape: str = "timeseries"


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One file. `rows`: panels under a heading. `of_a_rule`: shows the rule that the reader chooses."""

    title: str
    rows: Mapping[str, Sequence[Panel]]
    of_a_rule: bool = False


DASHBOARDS = {
    "overview": Dashboard("alert-reactor: overview", {
        "Now": [
            Panel("reactor_bus_up", "instance", "stat"), Panel("reactor_partitions_owned", "", "stat"),
            Panel("reactor_failed_over", "rule", "stat"), Panel("reactor_held", "rule, reason"),
            Panel("reactor_rule_state", "state"), Panel("reactor_open_windows"),
        ],
        "Acts": [Panel("reactor_actions", "action, status"), Panel("reactor_action_seconds"),
                 Panel("reactor_notifications", "kind, fate")],
        "Needs a person": [
            Panel("reactor_rule_problems", "rule"), Panel("reactor_rule_files_invalid", "instance"),
            Panel("reactor_loop_failures", "loop, reason"), Panel("reactor_quarantined_messages", "stream"),
            Panel("reactor_log_lines_dropped", "instance"), Panel("reactor_kubernetes_event_failures", "reason"),
        ],
        "Processes": [
            Panel("reactor_build_info", "instance, version, python", "table"),
            Panel("process_start_time_seconds", "instance", "table"), Panel("process_cpu_seconds", "instance"),
            Panel("process_resident_memory_bytes", "instance"), Panel("process_virtual_memory_bytes", "instance"),
            Panel("process_open_fds", "instance"), Panel("process_max_fds", "instance"),
            Panel("reactor_loop_lag_seconds", "instance"), Panel("reactor_gc_pause_seconds", "generation"),
        ],
    }),
    "decisions": Dashboard("alert-reactor: decisions", {
        "From fact to decision": [
            Panel("reactor_decision_seconds"), Panel("reactor_decide_seconds"), Panel("reactor_facts", "kind"),
            Panel("reactor_decisions", "because"), Panel("reactor_holds", "reason"),
            Panel("reactor_refresh_requests", "source"),
        ],
        "What is known": [
            Panel("reactor_targets", "status"), Panel("reactor_observations", "source, status"),
            Panel("reactor_source_errors", "source, reason"), Panel("reactor_targets_refused", "source"),
            Panel("reactor_observations_delayed"),
            Panel("reactor_lists_doubted", "cluster"), Panel("reactor_watch_restarts", "cluster, reason"),
            Panel("reactor_open_watches", "cluster"), Panel("reactor_prometheus_warnings", "prometheus"),
            Panel("reactor_threads_waiting", "purpose"),
        ],
        "Carrying out": [
            Panel("reactor_actions", "rule, status"), Panel("reactor_action_seconds", "action"),
            Panel("reactor_action_slots_refused", "peer, reason"),
        ],
    }),
    "bus": Dashboard("alert-reactor: bus and receiver", {
        "Bus": [
            Panel("reactor_bus_up", "instance"), Panel("reactor_partitions_owned", "instance"),
            Panel("reactor_clock_difference_seconds", "instance"),
            Panel("reactor_clock_skew_bound_seconds", "instance"),
            Panel("reactor_quarantined_messages", "stream"), Panel("reactor_rule_reloads", "result"),
        ],
        "Alerts by webhook": [
            Panel("reactor_webhook_posts", "source, code"), Panel("reactor_webhook_seconds", "source"),
            Panel("reactor_webhook_alerts", "source, fate"), Panel("reactor_webhook_truncated_alerts", "source"),
            Panel("reactor_webhook_limits_exceeded", "limit"), Panel("reactor_alerts_refused", "source"),
        ],
        "Connections": [
            Panel("reactor_connections", "listener"), Panel("reactor_connections_closed", "listener, limit, fate"),
            Panel("reactor_malformed_requests", "instance"),
        ],
    }),
    "rule": Dashboard("alert-reactor: a rule", {
        "$rule": [
            Panel("reactor_rule_state", "state"), Panel("reactor_failed_over", "", "stat"),
            Panel("reactor_targets", "status"), Panel("reactor_held", "reason"), Panel("reactor_holds", "reason"),
            Panel("reactor_decisions", "because"), Panel("reactor_actions", "action, status"),
            Panel("reactor_rule_problems"),
        ],
    }, of_a_rule=True),
}  # fmt: skip


def metrics() -> dict[str, Metric]:
    """Metrics of a reactor by name: of a counter without `_total`."""
    return {metric.name: metric for metric in telemetry.REGISTRY.collect()}


def queries(metric: Metric, panel: Panel, chosen: str) -> Iterator[tuple[str, str]]:
    """Give PromQL and legend. `chosen`: the matchers that say of which reactors."""
    by = f" by ({panel.by})" if panel.by else ""
    legend = " ".join(f"{{{{{label.strip()}}}}}" for label in panel.by.split(",") if label)
    match metric.type:
        case "histogram":
            buckets = "le" + (f", {panel.by}" if panel.by else "")
            for name, quantile in (("p50", "0.5"), ("p99", "0.99")):
                rate = f"sum by ({buckets}) (rate({metric.name}_bucket{{{chosen}}}[{RATE}]))"
                yield f"histogram_quantile({quantile}, {rate})", f"{name} {legend}".strip()
        case "counter":
            yield f"sum{by} (rate({metric.name}_total{{{chosen}}}[{RATE}]))", legend
        case _:
            yield f"sum{by} ({metric.name}{{{chosen}}})", legend


def unit(metric: Metric) -> str:
    """Grafana's name of what the panel's axis counts."""
    if metric.type == "counter":
        return "percentunit" if metric.name.endswith("_seconds") else "cps"
    return {"seconds": "s", "bytes": "bytes"}.get(metric.name.rpartition("_")[2], "short")


def panel_json(number: int, place: Mapping[str, int], metric: Metric, panel: Panel, chosen: str) -> dict[str, Any]:
    """One panel as Grafana stores it."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    table = panel.shape == "table"
    asked = [
        {"datasource": source, "expr": expression, "legendFormat": legend, "refId": chr(ord("A") + index)}
        | ({"format": "table", "instant": True} if table else {})
        for index, (expression, legend) in enumerate(queries(metric, panel, chosen))
    ]
    title = metric.name.removeprefix("reactor_").removesuffix("_seconds").replace("_", " ")
    field = {"unit": "dateTimeFromNow" if metric.name.endswith("_time_seconds") else unit(metric)}
    field |= {} if table else {"min": 0} if "difference" not in metric.name else {}
    if metric.name == "process_start_time_seconds":
        asked[0]["expr"] = f"1000 * {asked[0]['expr']}"  # Grafana's dates are milliseconds
    return {
        "id": number, "type": panel.shape, "title": title, "description": metric.documentation, "gridPos": dict(place),
        "datasource": source, "fieldConfig": {"defaults": field, "overrides": []}, "options": {}, "targets": asked,
    }  # fmt: skip


def variables(of_a_rule: bool) -> list[dict[str, Any]]:
    """Variables that the reader chooses: the data source, the job that scrapes the reactors, and a rule."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    asked = [("job", "label_values(reactor_build_info, job)", False)]
    asked += [("rule", 'label_values(reactor_rule_state{job="$job"}, rule)', True)] if of_a_rule else []
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        *(
            {"name": name, "type": "query", "datasource": source, "query": query, "refresh": 2, "includeAll": every,
             "allValue": ".+", "sort": 1}
            for name, query, every in asked
        ),
    ]  # fmt: skip


def dashboard_json(name: str, dashboard: Dashboard) -> dict[str, Any]:
    """One dashboard as Grafana imports it."""
    known, panels, top = metrics(), list[dict[str, Any]](), 0
    chosen = 'job="$job"' + (', rule=~"$rule"' if dashboard.of_a_rule else "")
    for heading, row in dashboard.rows.items():
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        panels.append({"id": len(panels) + 1, "type": "row", "title": heading, "collapsed": False, "gridPos": place,
                       "panels": []})  # fmt: skip
        top += 1
        for index, panel in enumerate(row):
            down, across = divmod(index, COLUMNS // WIDTH)
            place = {"h": HEIGHT, "w": WIDTH, "x": across * WIDTH, "y": top + down * HEIGHT}
            panels.append(panel_json(len(panels) + 1, place, known[panel.metric], panel, chosen))
        top += -(-len(row) // (COLUMNS // WIDTH)) * HEIGHT
    return {
        "uid": f"alert-reactor-{name}", "title": dashboard.title, "tags": ["alert-reactor"], "schemaVersion": 39,
        "editable": True, "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "timezone": "browser",
        "links": [{"type": "dashboards", "tags": ["alert-reactor"], "title": "alert-reactor", "asDropdown": True}],
        "templating": {"list": variables(dashboard.of_a_rule)}, "panels": panels,
    }  # fmt: skip


def files() -> dict[Path, str]:
    """Each file and its text."""
    return {
        FOLDER / f"{name}.json": json.dumps(dashboard_json(name, one), indent=1) + "\n"
        for name, one in DASHBOARDS.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
