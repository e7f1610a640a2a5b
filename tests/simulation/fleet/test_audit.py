"""The audit of simulated fleets, through outages and crashes, has no finding: every act has its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from bus.message_admission import read_message
from bus.messages import DecisionRecord, Message, Observation
from bus.topology import DECISIONS, FACTS, Stream
from reactor.audit.decisions import judge
from reactor.audit.stored_observations import hear
from rules.rehearsal.recorded_premises import by_rules
from tests.simulation.fleet.draws import DRAWS
from tests.simulation.fleet.reload import rules
from tests.simulation.fleet.world import World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

SEEDS = range(3)


def stored(world: World, stream: Stream) -> Iterator[Message]:
    for one in world.fleet.server.log(stream).under(stream.subjects[0]):
        yield read_message(one.subject, one.body).data


# Without edits: the rule of then is not known to who looks later.
@pytest.mark.parametrize("kind", [kind for kind in DRAWS if kind != "edits"])
def test_the_audit_of_a_fleet_has_no_finding(kind: str) -> None:
    tested = Counter[str]()
    for seed in SEEDS:
        scenario = DRAWS[kind](seed)
        world = World(scenario)
        world.play()
        records = [one for one in stored(world, DECISIONS) if isinstance(one, DecisionRecord)]
        observations = [one for one in stored(world, FACTS) if isinstance(one, Observation)]
        verdict = judge(records, hear(observations), by_rules(rules(scenario, 0.0).rules.values()))
        assert [str(breach) for breach in verdict.breaches] == [], f"{kind}:{seed}"
        tested += verdict.tested
    assert tested["needless"] >= 3
    # A bus that was wiped has lost observations.
    assert tested["undecided"] == 0 or kind in ("wiped", "wiped-zones")
