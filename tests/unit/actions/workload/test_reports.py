"""The word and the sentence for what became of a move; and which late action is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reactor.actions.outcomes import Declined
from reactor.actions.workload.marks import is_ours, refuse_if_stale, stamps
from reactor.actions.workload.refusals import word_for
from reactor.actions.workload.reports import Report, outcome
from reactor.clients.kubernetes_port import (
    ApiUnavailable,
    Conflict,
    Forbidden,
    Invalid,
    JsonObject,
    NotFound,
)
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from tests.unit.actions.workload.builders import DECIDED, place


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ApiUnavailable("no answer"), "ClusterUnreachable"),
        (ApiUnavailable("bad gateway", status=502), "ClusterUnreachable"),
        (ApiUnavailable("busy", status=429), "ApiUnavailable"),
        (NotFound('answered 404: namespaces "shop" not found'), "NamespaceMissing"),
        (NotFound('answered 404: clusters.cluster.karmada.io "m1" not found'), "ObjectMissing"),
        (NotFound("answered 404: the server could not find the requested resource"), "KindMissing"),
        (Forbidden("answered 403: pods is forbidden: exceeded quota: q"), "QuotaExceeded"),
        (Forbidden('answered 403: User "x" cannot patch resource "deployments"'), "Forbidden"),
        (Forbidden('answered 403: violates PodSecurity "restricted:latest"'), "AdmissionDenied"),
        (Invalid('answered 400: admission webhook "w" denied the request: no'), "AdmissionDenied"),
        (Invalid("answered 422: spec.replicas: Invalid value"), "Invalid"),
        (Conflict("answered 409"), "Conflict"),
        (Declined("CopyTerminating", "x"), "CopyTerminating"),
    ],
)
def test_every_refusal_has_its_word(error: ReactorError, word: str) -> None:
    assert word_for(error) == word


def test_what_was_written_before_a_refusal_is_said_first() -> None:
    fine = Report("member2", ["Deployment/nginx"])
    stopped = Report("member3", ["ConfigMap/a"], Forbidden("exceeded quota: q"))
    found = outcome(place({"member2": 1}), Clock(), [fine, stopped])
    assert (found.status, found.reason, found.wrote) == ("Failed", "QuotaExceeded", True)
    assert found.detail == (
        "member3: wrote ConfigMap/a; then QuotaExceeded: exceeded quota: q; member2: wrote Deployment/nginx"
    )


def test_a_refusal_beside_a_failure_is_tried_again() -> None:
    reports = [Report("m1", [], Declined("Stale", "newer")), Report("m2", [], ApiUnavailable("gone"))]
    found = outcome(place({"m1": 1}), Clock(), reports)
    assert (found.status, found.reason) == ("Failed", "ClusterUnreachable")
    assert outcome(place({"m1": 1}), Clock(), reports[:1]).status == "Refused"


def test_many_clusters_make_no_endless_detail() -> None:
    reports = [Report(f"member{number}", [], ApiUnavailable("x" * 200)) for number in range(50)]
    assert len(outcome(place({"m1": 1}), Clock(), reports).detail) <= 1024


def carrying() -> JsonObject:
    written = {**stamps(place({"m": 1}, generation=7))}
    return {"metadata": {"annotations": written}}


@pytest.mark.parametrize(
    ("generation", "later", "stale"),
    [(6, -1, True), (7, -1, False), (8, -1, False), (6, 0, False), (6, 1, False)],
)
def test_only_a_lower_generation_that_was_decided_earlier_is_stale(generation: int, later: int, *, stale: bool) -> None:
    action = place({"m": 1}, generation=generation, decided_at=DECIDED + timedelta(seconds=later))
    if not stale:
        refuse_if_stale(carrying(), action)
        return
    with pytest.raises(Declined) as refusal:
        refuse_if_stale(carrying(), action)
    assert refusal.value.reason == "Stale"


@pytest.mark.parametrize("odd", ["", "soon", "2026-01-01", "2200-01-01T00:00:00"])
def test_notes_that_a_person_has_edited_refuse_nothing(odd: str) -> None:
    early = place({"m": 1}, generation=1, decided_at=DECIDED - timedelta(days=1))
    obj = carrying()
    obj["metadata"]["annotations"]["reactor/decided-at"] = odd
    refuse_if_stale(obj, early)
    obj = carrying()
    obj["metadata"]["annotations"]["reactor/decision"] = "nginx/shop/Deployment/nginx/²"
    refuse_if_stale(obj, early)


def test_a_copy_of_another_group_is_not_ours_to_judge() -> None:
    obj = carrying()
    obj["metadata"]["annotations"]["reactor/decision"] = "other/shop/Deployment/nginx/99"
    refuse_if_stale(obj, place({"m": 1}, decided_at=DECIDED - timedelta(days=1)))


def test_ours_is_what_we_have_applied_not_what_we_have_marked() -> None:
    def owned(manager: str, operation: str) -> JsonObject:
        return {"metadata": {"managedFields": [{"manager": manager, "operation": operation}]}}

    assert is_ours(owned("alert-reactor", "Apply"))
    assert not is_ours(owned("alert-reactor", "Update"))
    assert not is_ours(owned("kubectl", "Apply"))
    assert not is_ours(carrying())
