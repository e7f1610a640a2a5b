"""Counters of what is rare begin at 0, and with the labels that they will be counted with."""

from __future__ import annotations

import re
from pathlib import Path

from reactor.process.zeros import POST_LIMITS, begin_at_zero
from reactor.runtime.telemetry import REGISTRY
from reactor.settings.model import Settings
from rules.loader import RuleSet

WEBHOOK = Path(__file__).parents[3] / "reactor/webhook"


def test_each_limit_of_a_post_is_among_them() -> None:
    said = {limit for path in WEBHOOK.glob("*.py") for limit in re.findall(r'limit="(\w+)"', path.read_text("utf-8"))}
    assert said == set(POST_LIMITS)


def test_what_settings_name_is_counted_from_the_start() -> None:
    settings = Settings.model_validate({
        "clusters": {"east": {}}, "prometheus": {"main": {"url": "http://127.0.0.1:9"}},
        "notifiers": {"zero-ops": {"kind": "log"}},
    })  # fmt: skip
    begin_at_zero(settings, RuleSet(), ("executor", "receiver"))
    for name, labels in (
        ("reactor_lists_doubted", {"cluster": "east"}),
        ("reactor_prometheus_warnings", {"prometheus": "main"}),
        ("reactor_webhook_limits_exceeded", {"limit": "depth"}),
        ("reactor_connections_closed", {"listener": "health", "limit": "maxConnections", "fate": "idle"}),
        ("reactor_action_slots_refused", {"peer": "notifier zero-ops", "reason": "busy"}),
        ("reactor_notifications", {"kind": "log", "fate": "failed"}),
        ("reactor_kubernetes_event_failures", {"reason": "Forbidden"}),
    ):
        assert REGISTRY.get_sample_value(f"{name}_total", labels) is not None, name
