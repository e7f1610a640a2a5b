"""Rule files are edited while windows are open: what is done next follows what they say then."""

from __future__ import annotations

from collections.abc import Sequence

from bus.messages import Fact, SetWeights
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import OBJECT, Event, backends, failover, healthy, outcome, route, rule_set, unhealthy

START = [route({"web": 1, "west": 0}), *(healthy(name, at=0, source=name) for name in ("web", "west"))]


class Edited:
    """One rule, whose file is edited as it runs. Its actions get no outcome."""

    def __init__(self, toleration: float, recovery: float = 0) -> None:
        self.store = GroupStore(self._routing(toleration, recovery))
        self.asked: list[tuple[float, dict[str, int]]] = []
        self._known: set[str] = set()
        self.take(*START)

    @staticmethod
    def _routing(toleration: float, recovery: float) -> Routing:
        rule = failover(backends=backends("web", "west"), tolerationSeconds=toleration, recoverySeconds=recovery)
        return Routing.of(rule_set(rule))

    def edit(self, second: float, toleration: float, recovery: float = 0) -> None:
        groups = [load_group(dump_group(group)) for group in self.store.groups.values()]
        self.store = GroupStore(self._routing(toleration, recovery), groups)
        self.store.reconsider(at(second))
        self.until(second)

    def take(self, *events: Event) -> None:
        for second, fact in events:
            self.until(second)
            self._note(second, self._applied(second, fact))

    def until(self, second: float) -> None:
        while (alarm := self.store.next_alarm()) is not None and alarm <= at(second):
            self._note((alarm - at(0)).total_seconds(), self.store.fire_due(alarm))

    def wanted(self, second: float, number: int = 1) -> bool | None:
        """Answer to an executor that asks whether this action is still wanted."""
        return self.store.confirm("web", OBJECT, f"web/{OBJECT}/{number}", at(second), at(second)).wanted

    def _applied(self, second: float, fact: Fact) -> Sequence[Decision]:
        return self.store.apply([fact], at(second))

    def _note(self, second: float, decisions: Sequence[Decision]) -> None:
        for action in (action for one in decisions for action in one.actions if isinstance(action, SetWeights)):
            if action.id not in self._known:
                self._known.add(action.id)
                self.asked.append((second, dict(action.weights)))


def bad(second: float) -> Event:
    return unhealthy("web", at=second, source="web", since=at(10))


def good(name: str, second: float, since: float = 0) -> Event:
    return healthy(name, at=second, source=name, since=at(since))


def test_a_rule_that_is_made_more_patient_waits_its_whole_new_toleration_though_the_old_one_is_over() -> None:
    played = Edited(toleration=5)
    played.take(bad(10), bad(16))  # over, and proven; nothing says yet that the other is well
    assert played.asked == []
    played.edit(17, toleration=30)
    played.take(good("west", 18), bad(18))
    assert played.asked == []
    played.take(good("west", 41), bad(41))
    assert played.asked == [(41, {"web": 0, "west": 1})]


def test_what_was_asked_for_by_a_shorter_toleration_is_called_off() -> None:
    played = Edited(toleration=5)
    played.take(bad(10), bad(16), good("west", 16))
    assert played.asked == [(16, {"web": 0, "west": 1})]
    assert played.wanted(16) is True
    played.edit(17, toleration=30)
    assert played.wanted(17) is False
    played.take(good("west", 41), bad(41))
    assert played.wanted(41) is True


def test_a_rule_that_is_made_less_patient_acts_at_once_where_its_new_toleration_is_over() -> None:
    played = Edited(toleration=300)
    played.take(bad(10), bad(20), good("west", 20))
    played.edit(21, toleration=5)
    assert played.asked == [(21, {"web": 0, "west": 1})]


def test_a_way_back_waits_the_whole_new_recovery_too() -> None:
    played = Edited(toleration=5, recovery=5)
    played.take(bad(10), bad(16), good("west", 16), outcome(f"web/{OBJECT}/1", "Done", at=17))
    played.take(good("web", 20, 20), good("west", 20), good("web", 24, 20))
    played.edit(24.5, toleration=5, recovery=60)
    played.take(good("web", 30, 20), good("west", 30))
    assert [second for second, _ in played.asked] == [16]
    played.take(good("web", 81, 20), good("west", 81))
    assert [second for second, _ in played.asked] == [16, 81]


def test_what_was_acted_on_stays_so_under_a_more_patient_rule() -> None:
    played = Edited(toleration=5)
    played.take(bad(10), bad(16), good("west", 16), outcome(f"web/{OBJECT}/1", "Done", at=17))
    played.edit(20, toleration=3600)
    played.take(bad(25), good("west", 25), bad(60), good("west", 60))
    assert [second for second, _ in played.asked] == [16]
