"""Benchmarks: a missing tool is reported, and is no failure; and each rule kind is measured."""

from __future__ import annotations

import pytest

from benchmarks.beside_linkerd import beside_linkerd_failover
from benchmarks.rules_many import KINDS as MEASURED
from rules import catalog
from rules.limits.limiter import LimiterRule


@pytest.mark.parametrize("program", ["", "/nowhere/linkerd-failover-controller"])
async def test_without_linkerd_failover_the_comparison_is_skipped(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKERD_FAILOVER", program)
    result = await beside_linkerd_failover()
    assert result.figures == {"skipped": "LINKERD_FAILOVER names no program"}


def test_every_kind_is_measured_with_ten_a_thousand_and_ten_thousand_rules() -> None:
    """All but the limiter's, which gets facts of no target: a group that acquires addresses it by its name."""
    measured = {name.partition(" ")[0] for name in MEASURED}
    kinds = [model.__name__.removesuffix("Rule") for model in catalog.KINDS if model is not LimiterRule]
    assert [f"benchmarks/rules_many.py, KINDS: {name}" for name in kinds if name not in measured] == []
