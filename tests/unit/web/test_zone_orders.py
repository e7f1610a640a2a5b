"""Orders of zones on the page: the plan of each, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import FailbackZone, IsolateZone, RetryZone
from reactor.web.operation_order import PlanBasis, ShownPlan
from reactor.web.operations import OPERATIONS
from reactor.web.page_access import Denied
from rules.core.group import Group
from rules.kinds.zone.state import Isolation, ZoneNodes, ZonesSeen, ZoneState
from rules.rehearsal.simulation import at
from tests.unit.rules.zone.builders import zone_rule

SEEN = ZonesSeen(at(0), {name: ZoneNodes(3, 3) for name in ("a", "b", "c")})


def shown(verb: str, isolation: Isolation | None, **body: Any) -> ShownPlan:
    order = OPERATIONS[verb].model_validate({"rule": "zones", "comment": "INC-7", **body})
    group = Group("zones", "cluster/prod", ZoneState(SEEN, isolation))
    words = {"by": "otto", "reason": "INC-7", "observed_at": at(60)}
    return order.shown(PlanBasis({"zones": zone_rule()}, [group], words))


def isolated(status: Any, phase: Any = "Failover", failure: str = "") -> Isolation:
    return Isolation("a", phase, status, "Commanded", at(0), at(0), touched=("Fence", "CutNetwork"), failure=failure)


def test_an_isolation_is_shown_with_its_guards_and_steps_and_names_zone_and_person() -> None:
    plan = shown("isolate-zone", None, zone="a", force=True, allowSingleZone=["shop/db"])
    assert "zones: isolate a" in plan.text
    assert "guards:" in plan.text
    assert isinstance(plan.command, IsolateZone)
    assert (plan.command.zone, plan.command.by, plan.command.allow_single_zone) == ("a", "otto", ("shop/db",))
    assert (
        plan.fingerprint == shown("isolate-zone", None, zone="a", force=True, allowSingleZone=["shop/db"]).fingerprint
    )
    assert plan.fingerprint != shown("isolate-zone", None, zone="b").fingerprint


@pytest.mark.parametrize(("verb", "isolation", "words", "kind"), [
    ("failback-zone", isolated("Done"), "fail back of a; undoes: CutNetwork, Fence", FailbackZone),
    ("abort-zone", isolated("InProgress"), "abort the isolation of a; undoes: CutNetwork, Fence", FailbackZone),
    ("retry-zone", isolated("Failed", failure="no answer"), "continue Failover of a: no answer", RetryZone),
])  # fmt: skip
def test_what_brings_a_zone_back_says_what_it_undoes(verb: str, isolation: Isolation, words: str, kind: type) -> None:
    plan = shown(verb, isolation)
    assert words in plan.text
    assert isinstance(plan.command, kind)


@pytest.mark.parametrize(("verb", "isolation", "body", "code"), [
    ("abort-zone", isolated("Done"), {}, 409), ("failback-zone", isolated("InProgress"), {}, 409),
    ("retry-zone", isolated("Done"), {}, 409), ("failback-zone", None, {}, 409),
    ("isolate-zone", None, {"zone": "nowhere"}, 404), ("isolate-zone", None, {"zone": "a", "rule": "other"}, 404),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_before_anything_is_sent(
    verb: str, isolation: Isolation | None, body: dict[str, Any], code: int
) -> None:
    with pytest.raises(Denied) as refusal:
        shown(verb, isolation, **body)
    assert refusal.value.code == code
