"""Owners die, leave, freeze and come: the others act in time, windows keep their start, and none writes for another.

Real processes with the spans of time of production. What is measured is printed, and said where it is too much.
"""

from __future__ import annotations

import asyncio
import signal
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from bus.embedded import EmbeddedServer
from reactor.demo.kube import Delay, Fault
from reactor.fleet.peers import LEASE
from rules.summary import route_of
from tests.e2e.conftest import MakeReactor
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

pytestmark = pytest.mark.alone

WINDOW = 8.0
HALF = 4.0
LATE = 2.0
"""Seconds that a busy machine may take over what is due. A window that restarted would be HALF late."""
TAKEN_OVER = LEASE + 4.0
HANDED_OVER = 1.0
SHARED = 15.0
SLOW = 1.0
"""Seconds that the API takes for each patch, so that there is a time in which actions are in flight."""
PARTITIONS = 64
PATIENT = [f"patient{number:02d}" for number in range(12)]
QUICK = [f"quick{number:02d}" for number in range(12)]
FIRST = [f"first{number:02d}" for number in range(12)]
"""They fail while no process stops: the time until the reactors act shows how busy the machine is."""


def rule(name: str, toleration: float) -> str:
    """A rule that names its route and its backends: each has a partition of its own. Others share their namespace's."""
    route = f"{{cluster: east, kind: TrafficSplit, namespace: shop, name: {name}}}"
    return f"""
- name: {name}
  kind: TrafficFailover
  mode: Enforce
  route: {route}
  backends: [{{service: {name}}}, {{service: fallback}}]
  tolerationSeconds: {toleration:g}"""


RULES = f"""
apiVersion: reactor/v1
sources:
- {{name: readiness, kind: EndpointsWatch, cluster: east, refreshSeconds: 5}}
rules:{"".join([*(rule(name, WINDOW) for name in PATIENT), *(rule(name, 0) for name in (*QUICK, *FIRST))])}
"""


@dataclass(frozen=True)
class Pair:
    """Two reactors on a bus that outlives both, and a shop of two kinds of routes."""

    shop: Shop
    one: Service
    two: Service

    def fail(self, names: Sequence[str]) -> Mapping[str, float]:
        """Let these lose all their endpoints; gives when."""
        return {name: self.shop.endpoints(name, ready=0) for name in names}

    async def moved(self, names: Sequence[str], within: float) -> Mapping[str, float]:
        """Wait until the traffic of all of them was moved away; gives when, of each."""
        await until(lambda: all(self.shop.moves(name) for name in names), f"{names} are moved away", within=within)
        return {name: self.shop.writes(name)[0].at for name in names}

    def moved_once(self, names: Sequence[str]) -> None:
        """Say that nothing was doubled, and nothing undone."""
        assert {name: self.shop.moves(name) for name in names} == {name: ["away"] for name in names}


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A bus that outlives the reactors."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def pair(
    shop: Shop, reactor: MakeReactor, nats: EmbeddedServer, request: pytest.FixtureRequest
) -> AsyncIterator[Pair]:
    """Two that share the partitions. With a parameter, the first of them decides only, and has that failpoint."""
    for name in (*PATIENT, *QUICK, *FIRST):
        shop.split(name, "fallback")
        shop.endpoints(name, ready=2)
    one, two = (reactor(RULES, name=name, bus={"url": nats.url}) for name in ("one", "two"))
    if hasattr(request, "param"):
        one.failpoint = request.param
        one._argv += ["--roles", "decider"]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(service) for service in (one, two)))
        await shared(one, two)
        await until_told(partial(_all_known, one), "each group knows its route and both of its backends")
        yield Pair(shop, one, two)


async def _all_known(service: Service) -> bool:
    groups = await service.groups()
    known = [group for group in groups if route_of(group) and len(group.members) == 2]
    return len(known) == len(PATIENT) + len(QUICK) + len(FIRST)


async def shared(*services: Service) -> float:
    """Wait until the partitions are shared evenly, and give how many seconds that took."""
    began = get_running_loop().time()

    async def evenly() -> bool:
        owned = [await service.metric("reactor_partitions_owned") for service in services]
        return sum(owned) == PARTITIONS and max(owned) - min(owned) <= 1

    await until_told(evenly, f"{len(services)} reactors share {PARTITIONS} partitions evenly", within=SHARED)
    return get_running_loop().time() - began


async def test_two_reactors_share_the_partitions_evenly_soon_after_joining(
    reactor: MakeReactor, nats: EmbeddedServer
) -> None:
    async with reactor(RULES, name="one", bus={"url": nats.url}) as one:
        print(f"one alone: {await shared(one):.2f} s")
        async with reactor(RULES, name="two", bus={"url": nats.url}) as two:
            print(f"with the second: {await shared(one, two):.2f} s")


async def test_after_kill_9_another_acts_within_the_lease_and_open_windows_keep_their_start(pair: Pair) -> None:
    opened = pair.fail(PATIENT)
    await asyncio.sleep(HALF)
    killed = get_running_loop().time()
    await pair.one.kill()
    pair.fail(QUICK)
    again = max((await pair.moved(QUICK, within=2 * TAKEN_OVER)).values()) - killed
    lasted = {name: at - opened[name] for name, at in (await pair.moved(PATIENT, within=2 * TAKEN_OVER)).items()}
    shortest, longest = min(lasted.values()), max(lasted.values())
    print(f"kill -9 → all act again {again:.2f} s; windows of {WINDOW} s took {shortest:.2f} to {longest:.2f} s")
    assert again <= TAKEN_OVER, f"acting again took {again:.2f} s"
    assert shortest >= WINDOW, f"a window of {WINDOW} s ran out after {shortest:.3f} s"
    assert longest <= WINDOW + LATE, f"a window of {WINDOW} s took {longest:.2f} s: it began anew at {HALF} s"
    pair.moved_once([*PATIENT, *QUICK])


async def test_after_a_clean_stop_another_acts_within_a_second(pair: Pair) -> None:
    began = min(pair.fail(FIRST).values())
    takes = max((await pair.moved(FIRST, within=TAKEN_OVER)).values()) - began
    opened = pair.fail(PATIENT)
    await asyncio.sleep(HALF)
    asked = get_running_loop().time()
    stopping = asyncio.create_task(pair.one.stop())
    pair.fail(QUICK)
    await stopping
    ended = get_running_loop().time()
    again = max((await pair.moved(QUICK, within=TAKEN_OVER)).values()) - ended
    lasted = [at - opened[name] for name, at in (await pair.moved(PATIENT, within=TAKEN_OVER)).items()]
    print(f"SIGTERM → end {ended - asked:.2f} s → all act {again:.2f} s, while both run {takes:.2f} s")
    print(f"windows {min(lasted):.2f}-{max(lasted):.2f} s")
    assert again <= HANDED_OVER + takes, f"acting took {again:.2f} s from the end of the process that was stopped"
    assert min(lasted) >= WINDOW
    assert max(lasted) <= WINDOW + LATE
    pair.moved_once([*PATIENT, *QUICK])


async def test_a_clean_stop_leaves_no_action_in_flight(pair: Pair) -> None:
    """An action that the stopped process had begun is carried out at once by another, or by itself before it ends."""
    pair.shop.east.faults.add(Fault(Delay(SLOW), verb="patch"))
    pair.fail(QUICK)
    await until(lambda: "SetWeights" in pair.one.log.read_text("utf-8"), "it has decided, and hands are full")
    await asyncio.sleep(SLOW / 2)
    await pair.one.stop()
    ended = get_running_loop().time()
    again = max((await pair.moved(QUICK, within=60)).values()) - ended
    print(f"end → all done {again:.2f} s")
    assert again <= HANDED_OVER + SLOW, f"the last was done {again:.2f} s after the end of the one that had it in hands"
    pair.moved_once(QUICK)


@pytest.mark.parametrize("pair", ["decider.state-stored=stop"], indirect=True)
async def test_the_late_writes_of_an_owner_that_was_frozen_over_a_takeover_are_refused(pair: Pair) -> None:
    """It stops itself between storing what it owes and publishing it, and goes on when another has long done that."""
    pair.fail(QUICK)
    await until(lambda: "(stopped)" in _state(pair.one.process.pid), "the owner stands still with an action in hands")
    frozen = get_running_loop().time()
    again = max((await pair.moved(QUICK, within=2 * TAKEN_OVER)).values()) - frozen
    print(f"SIGSTOP → all act again {again:.2f} s")
    assert again <= TAKEN_OVER, f"acting again took {again:.2f} s"
    before = pair.shop.all_writes()

    pair.one.process.send_signal(signal.SIGCONT)
    refused = await until(lambda: _refusals(pair.one), "the server refuses what it publishes for its old epoch")
    print(*refused, sep="\n")
    await shared(pair.one, pair.two)  # it is a member like any other again
    pair.fail(PATIENT)
    await pair.moved(PATIENT, within=WINDOW + TAKEN_OVER)
    pair.moved_once([*PATIENT, *QUICK])
    late = [write for write in pair.shop.all_writes()[len(before) :] if write.name in QUICK]
    assert late == [], "something was still written for what another had done"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text("utf-8")


def _refusals(service: Service) -> list[str]:
    """Answers of the bus server to publishers of an epoch that is over."""
    return [line for line in service.log.read_text("utf-8").splitlines() if "wrong last sequence" in line]
