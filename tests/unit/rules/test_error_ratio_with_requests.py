"""A rule on an error ratio, with requests that follow the weights, on virtual time.

What is known of a service is counted from the requests that it got: without any the ratio is 0/0, and health is
Unknown.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import SetWeights
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.loader import load_rules
from rules.rehearsal.simulation import Simulator, assumed_routes, at
from tests.examples import many
from tests.unit.rules.builders import failover, rule_file, seen

PER_SECOND, SCRAPE, EVALUATION, RANGE, BAD = 20, 5, 10, 30, 0.1
WAIT, TRIAL, PERCENT, LONGEST = 60, 60, 5, 300
FAULT_BEGINS = 100
PRIMARY = "a"


@dataclass
class Service:
    """A service, and its counters as a Prometheus has scraped them."""

    fails: float = 0
    count: Counter[str] = field(default_factory=Counter)
    scraped: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=RANGE // SCRAPE + 1))

    def status(self, now: int) -> str:
        """Health by `rate(errors[30s]) / rate(requests[30s]) > 0.1`."""
        inside = [sample for sample in self.scraped if sample[0] > now - RANGE]
        served = inside[-1][1] - inside[0][1] if len(inside) > 1 else 0
        if not served:
            return "Unknown"
        return "Unhealthy" if (inside[-1][2] - inside[0][2]) / served > BAD else "Healthy"


@dataclass
class World:
    """Requests by the weights, a Prometheus, a probe of the secondary, and the rule."""

    seed: int = 7
    way_back: dict[str, Any] = field(
        default_factory=lambda: {"mode": "Trial", "trial": {"percent": PERCENT, "seconds": TRIAL},
                                 "backoff": {"factor": 2, "maxSeconds": LONGEST}}
    )  # fmt: skip
    services: dict[str, Service] = field(default_factory=lambda: {PRIMARY: Service(), "b": Service()})
    weights: dict[str, int] = field(default_factory=lambda: {PRIMARY: 1, "b": 0})
    writes: list[tuple[float, str, dict[str, int]]] = field(default_factory=list)
    failed: Counter[bool] = field(default_factory=Counter)
    """Requests since the first move, by whether they failed."""

    def play(self, *faults: tuple[int, int, float], until: int) -> World:
        """Live through faults of the primary: from, to, and the share of requests that fail."""
        routing = Routing.of(load_rules([("rules.yaml", self._rules())]))
        player, dice = Simulator(GroupStore(routing), outcomes=True), random.Random(self.seed)
        self._keep(player.take([*assumed_routes(routing.rules.values(), [], 0)], at(0)))
        for now in range(until):
            self._keep(player.until(at(now)))
            self.services[PRIMARY].fails = next((share for begin, end, share in faults if begin <= now < end), 0)
            for name in dice.choices([*self.weights], [*self.weights.values()], k=PER_SECOND):
                self._request(self.services[name], dice)
            for service in self.services.values():
                if now % SCRAPE == 0:
                    service.scraped.append((now, service.count["all"], service.count["bad"]))
            if now % EVALUATION == 0:
                facts = [seen(PRIMARY, self.services[PRIMARY].status(now), at=now, signal="errors", stale=90)[1],
                         seen("b", "Healthy", at=now, signal="probe", stale=90)[1]]  # fmt: skip
                self._keep(player.take(facts, at(now)))
        return self

    def _request(self, service: Service, dice: random.Random) -> None:
        bad = dice.random() < service.fails
        service.count.update({"all": 1, "bad": int(bad)})
        if self.writes:
            self.failed[bad] += 1

    def _keep(self, things: Any) -> None:
        for one in things:
            if isinstance(one.what, SetWeights):
                self.weights.update(one.what.weights)
                self.writes.append((one.at, one.what.because, dict(self.weights)))

    def _rules(self) -> str:
        query = f"sum by (service) (rate(errors[{RANGE}s])) / sum by (service) (rate(requests[{RANGE}s]))"
        errors = {"name": "errors", "kind": "PrometheusQuery", "prometheus": "main", "query": query,
                  "everySeconds": EVALUATION, "target": "service/east/shop/{service}",
                  "unhealthyWhen": {"above": BAD}}  # fmt: skip
        probe = {"name": "probe", "kind": "TcpProbe", "target": "service/east/shop/b", "host": "b", "port": 80}
        rule = failover(
            backends=[{"service": PRIMARY}, {"service": "b"}], tolerationSeconds=10, recoverySeconds=WAIT,
            failback=self.way_back,
        )  # fmt: skip
        return rule_file(rule, sources=[errors, probe])

    @property
    def causes(self) -> list[str]:
        return [because for _, because, _ in self.writes]

    @property
    def share_failed(self) -> float:
        """Of all requests since the first move."""
        return self.failed[True] / self.failed.total()


@pytest.mark.parametrize("seed", range(5))
def test_a_fault_of_30_percent_for_ten_minutes_makes_at_most_seven_writes_and_fails_at_most_2_percent(
    seed: int,
) -> None:
    world = World(seed).play((FAULT_BEGINS, 10_000, 0.3), until=FAULT_BEGINS + 600)
    assert len(world.writes) <= 1 + 2 * 3
    assert world.causes[:3] == ["PrimaryUnhealthy", "Trial", "TrialFailed"]
    assert world.share_failed <= 0.02


def test_without_the_way_back_by_trial_the_same_fault_keeps_the_traffic_away_without_end() -> None:
    """Reason for a trial: the health of a primary without requests is not known."""
    world = World(way_back={"mode": "Automatic"}).play((FAULT_BEGINS, FAULT_BEGINS + 60, 0.3), until=2000)
    assert world.causes == ["PrimaryUnhealthy"]


@many(25)
@given(st.integers(0, 1000), st.integers(30, 900), st.sampled_from([0.3, 0.5, 1.0]))
def test_after_healing_it_is_back_within_the_wait_a_trial_the_range_and_two_evaluations(
    seed: int, lasts: int, share: float
) -> None:
    healed = FAULT_BEGINS + lasts
    longest = LONGEST + TRIAL + RANGE + 2 * EVALUATION
    world = World(seed).play((FAULT_BEGINS, healed, share), until=healed + 2 * longest)
    assert world.causes[0] == "PrimaryUnhealthy"
    when, because, weights = world.writes[-1]
    assert (because, weights) == ("PrimaryHealthy", {PRIMARY: 1, "b": 0})
    # A trial that was running when it healed has met the fault, and fails: one more wait follows it.
    tried = [begun for begun, cause, _ in world.writes if cause == "Trial" and begun <= healed]
    begins = max(
        [healed, *(at_ for at_, cause, _ in world.writes if cause == "TrialFailed" and at_ > healed and tried)]
    )
    assert when <= begins + longest


def test_a_secondary_that_serves_keeps_the_rest_while_the_primary_is_tried() -> None:
    world = World().play((FAULT_BEGINS, FAULT_BEGINS + 60, 0.5), until=1000)
    assert [weights for _, because, weights in world.writes if because == "Trial"] == [{PRIMARY: 5, "b": 95}]
    assert world.causes == ["PrimaryUnhealthy", "Trial", "PrimaryHealthy"]


def test_the_primarys_share_in_a_trial_is_its_percent_within_3_sigma_over_10000_requests() -> None:
    world = World().play((FAULT_BEGINS, FAULT_BEGINS + 60, 0.5), until=1000)
    [tried] = [weights for _, because, weights in world.writes if because == "Trial"]
    requests, share = 10_000, PERCENT / 100
    got = Counter(random.Random(7).choices([*tried], [*tried.values()], k=requests))[PRIMARY]
    sigma = (requests * share * (1 - share)) ** 0.5
    assert abs(got - requests * share) <= 3 * sigma
    assert tried[PRIMARY] / sum(tried.values()) == share
