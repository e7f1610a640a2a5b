"""API servers on which the contract is tested here; one skipped test for each that it is not."""

from __future__ import annotations

import pytest

from tests.kube.tiers import REQUIRED, TIERS, from_kubeconfig, why_not


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_is_there_or_says_why_not(tier: str) -> None:
    reason = why_not(tier)
    if reason and tier in REQUIRED:
        pytest.fail(f"REACTOR_REQUIRE_KUBE asks for {tier}, but: {reason}")
    if reason:
        pytest.skip(f"{tier}: {reason}")


def test_a_kubeconfig_says_how_to_reach_its_cluster() -> None:
    text = """
        apiVersion: v1
        kind: Config
        current-context: west
        contexts: [{name: west, context: {cluster: west, user: me}}]
        clusters: [{name: west, cluster: {server: "http://127.0.0.1:1"}}]
        users: [{name: me, user: {token: sesame}}]
    """
    server = from_kubeconfig("existing", text)
    assert server.url == "http://127.0.0.1:1"
    assert server.headers == {"Authorization": "Bearer sesame"}
