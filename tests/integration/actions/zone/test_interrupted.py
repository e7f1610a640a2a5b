"""Calls that end otherwise than they should: an answer that is lost, a process that was stopped, a call cut short."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from reactor.actions.zone.isolation_context import CALL_SECONDS, WRITE_SECONDS
from reactor.clients.aws import Boto
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject, KubeApi
from reactor.demo.kube import EmulatedCluster
from tests.integration.actions.zone.aws import REGION, Vpc
from tests.integration.actions.zone.scene import CrashingApi, Hurried, Reactor, furnish, picture
from tests.integration.actions.zone.test_aws_acl import CUT, OPEN, WRITES

STEPS = ("CutNetwork",)


@dataclass
class Unheard:
    """EC2 that carries out the n-th of its writes (from 0), and whose answer never comes."""

    api: Boto
    at: int
    writes: int = 0

    @property
    def region(self) -> str:
        return self.api.region

    async def read(self, operation: str, key: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        return await self.api.read(operation, key, **parameters)

    async def write(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        answer = await self.api.write(operation, **parameters)
        self.writes += 1
        if self.writes == self.at + 1:
            raise ApiUnavailable(f"{operation} got no answer")
        return answer


@pytest.mark.parametrize("at", range(WRITES))
async def test_a_call_that_took_effect_and_was_not_answered_is_told_and_the_next_one_finds_it(
    vpc: Vpc, east: EmulatedCluster, api: KubeApi, at: int
) -> None:
    network = {"network": {"provider": "AwsNetworkAcl", "region": REGION, "vpcId": vpc.id}}
    for undo, end in ((False, CUT), (True, OPEN)):
        ec2 = Unheard(vpc.boto, at)
        reactor = Reactor({"prod": api}, Hurried(), network, ec2=ec2, steps=STEPS)
        action = reactor.action("CutNetwork", undo=undo)
        first = await reactor.once(action)
        assert (first.status, first.reason, "got no answer" in first.detail) == ("Failed", "ApiUnavailable", True)
        assert (await reactor.once(action)).status == "Done"
        assert vpc.picture() == end
        assert ec2.writes == WRITES, "nothing was written twice"


@dataclass(eq=False)
class Stopped(CrashingApi):
    """A process that is stopped while it reads, and goes on when the time of its call is long over."""

    clock: Hurried | None = None

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        found = await self.api.list(path, label_selector=label_selector, field_selector=field_selector)
        if self.clock is not None:
            self.clock.forward(CALL_SECONDS + WRITE_SECONDS)
        return found


async def test_a_process_that_was_stopped_begins_no_write_when_its_time_is_over(
    east: EmulatedCluster, api: KubeApi
) -> None:
    furnish(east)
    before, clock = picture(east), Hurried()
    stopped = Stopped(api, clock=clock)
    reactor = Reactor({"prod": stopped}, clock)
    outcome = await reactor.once(reactor.action("Fence"))
    assert (outcome.status, outcome.reason) == ("Failed", "InProgress")
    assert "the time of this call is over" in outcome.detail
    assert (stopped.writes, picture(east)) == ([], before)


async def test_a_write_to_aws_that_is_cut_short_has_landed_before_its_caller_goes_on() -> None:
    """A thread cannot be stopped; an undo that began now would read the world before this write."""
    landing, landed = threading.Event(), threading.Event()

    class Slow:
        def replace_network_acl_association(self, **_: Any) -> dict[str, Any]:
            landing.wait(10)
            landed.set()
            return {}

    write = asyncio.create_task(Boto(REGION, Slow()).write("replace_network_acl_association"))
    await asyncio.sleep(0)  # it is on its way
    write.cancel()
    asyncio.get_running_loop().call_later(0.05, landing.set)
    with pytest.raises(asyncio.CancelledError):
        await write
    assert landed.is_set()
