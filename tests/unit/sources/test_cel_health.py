"""Expressions give health; an error is no answer."""

from __future__ import annotations

import pytest

from bus.messages import Health
from reactor.runtime.errors import SettingsError
from reactor.sources.kubernetes.cel_health import CelHealth

pytest.importorskip("cel_expr_python", reason="the extra cel is not installed")
H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
READY = {"type": "Ready", "status": "True", "note": None}
OBJECT = {"spec": {"replicas": 2}, "status": {"ready": 2, "conditions": [READY]}}


@pytest.mark.parametrize(("expression", "status"), [
    ("object.status.ready >= object.spec.replicas", H), ("object.status.ready > object.spec.replicas", U),
    ("object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", H), ("has(object.missing)", U),
    ("object.status.missing == 1", N), ("1 / (object.status.ready - 2) == 1", N), ("object.status.ready", N),
    ("object.status.conditions[0].note", N), ("object.status.conditions[7].type == 'Ready'", N),
])  # fmt: skip
def test_an_expression_gives_health_and_an_error_is_unknown(expression: str, status: Health) -> None:
    verdict = CelHealth(expression).judge(OBJECT)
    assert verdict.status is status
    assert verdict.detail


def test_an_expression_that_takes_too_much_is_ended() -> None:
    health = CelHealth("object.l.all(a, object.l.all(b, object.l.all(c, c >= 0)))")
    assert health.judge({"l": list(range(1000))}).status is N


@pytest.mark.parametrize("odd", [{"a": 2**70}, {"a": "\ud800"}, {"a": object()}])
def test_an_object_that_the_engine_cannot_hold_is_unknown(odd: dict[str, object]) -> None:
    assert CelHealth("object.a == 1").judge(odd).status is N


@pytest.mark.parametrize(("expression", "why"), [
    ("object.", "Syntax error"), ("thing.status == 1", "undeclared reference to 'thing"),
    ("1 + 1", "has to give true or false"), ("size(object) && true", "no matching overload"),
])  # fmt: skip
def test_an_expression_that_cannot_work_is_refused_when_its_source_starts(expression: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        CelHealth(expression)
