"""What a benchmark needs and does not find is said, and is no failure."""

from __future__ import annotations

import pytest

from benchmarks.beside_linkerd import beside_linkerd_failover


@pytest.mark.parametrize("program", ["", "/nowhere/linkerd-failover-controller"])
async def test_without_linkerd_failover_the_comparison_is_skipped(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKERD_FAILOVER", program)
    result = await beside_linkerd_failover()
    assert result.figures == {"skipped": "LINKERD_FAILOVER names no program"}
