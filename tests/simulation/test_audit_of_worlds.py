"""The audit of simulated worlds, of all kinds of rules and through all kinds of weather, has no finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import pytest

from bus.messages import DecisionRecord
from reactor.audit.decisions import judge
from rules.engine.decide import Decision
from rules.rehearsal.decision_replay import recorded
from rules.rehearsal.recorded_premises import by_rules
from rules.rehearsal.world import play
from rules.rehearsal.world.world_topology import enforced
from tests.simulation.rulefiles import rule_set

pytestmark = pytest.mark.timeout(300)

NAMES = ("three_regions", "brownout", "plain_clusters", "karmada_divided", "directly", "taints", "zones", "all down",
         "zones drilled", "unknown is bad")  # fmt: skip
HOURS = 4.0


class _RecordingGroupStore(play.WitnessedGroupStore):
    """Groups whose decisions are recorded."""

    records: list[DecisionRecord]

    def _shown(self, decisions: list[Decision], now: datetime) -> list[Decision]:
        self.records += [recorded(one, "", now) for one in decisions if one.actions and one.seen is not None]
        return super()._shown(decisions, now)


def played(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> Sequence[DecisionRecord]:
    """Records of a world: over the wire and back, as the audit keeps them."""
    monkeypatch.setattr(_RecordingGroupStore, "records", [], raising=False)
    monkeypatch.setattr(play, "WitnessedGroupStore", _RecordingGroupStore)
    play.play_world(rule_set(name), seed, HOURS)
    return [DecisionRecord.model_validate_json(one.model_dump_json()) for one in _RecordingGroupStore.records]


# By their evidence alone: some of their sources date what they see by clocks that are ahead by more than any real one.
@pytest.mark.parametrize("name", NAMES)
def test_the_audit_of_a_world_has_no_finding(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    records = played(name, 0, monkeypatch)
    verdict = judge(records, {}, by_rules(enforced(rule_set(name)).rules))
    assert [str(breach) for breach in verdict.breaches] == []
    asked = Counter(action["action"] for record in records for action in record.actions)
    assert asked.total() >= 2
    assert verdict.tested["needless"] >= 1, asked
