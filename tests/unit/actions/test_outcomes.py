"""Outcomes of failures."""

from __future__ import annotations

import pytest

from reactor.actions.outcomes import Declined, NotAsAsked, failed
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (NotFound("x"), "Failed", "RouteNotFound"),
        (Forbidden("grant patch on trafficsplits"), "Failed", "Forbidden"),
        (Invalid("x"), "Failed", "Invalid"),
        (Conflict("x"), "Failed", "Conflict"),
        (ApiUnavailable("x"), "Failed", "ApiUnavailable"),
        (NotAsAsked("x"), "Failed", "NotAsAsked"),
        (Declined("BackendMissing", "x"), "Failed", "BackendMissing"),
        (Declined("Stale", "x"), "Refused", "Stale"),
        (Declined("AlreadyDone", "x"), "Refused", "AlreadyDone"),
        (Declined("AllZero", "x"), "Refused", "AllZero"),
        (Declined("DryRun", "x"), "Refused", "DryRun"),
    ],
)
def test_every_error_has_its_word(error: ReactorError, status: str, reason: str) -> None:
    outcome = failed("id", Clock(), error)
    assert (outcome.status, outcome.reason, outcome.detail, outcome.wrote) == (status, reason, str(error), False)


def test_a_page_long_error_is_cut() -> None:
    assert len(failed("id", Clock(), Invalid("x" * 10_000)).detail) == 1024
