"""Each kind of route, with an executor that dies at its write, loses the answer, or meets another writer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactor.actions.traffic.route_weights import carry_out
from reactor.actions.traffic.weights import backends_of
from reactor.clients.kubernetes_api import Kubernetes
from reactor.clients.route_entries import weights_of
from reactor.demo.kube import EmulatedCluster, Emulator, Fault, LoseAnswer
from reactor.demo.kube.crds import shipped
from reactor.runtime.clock import Clock
from tests.contract.kube.test_route_kinds import pools
from tests.integration.actions.conftest import Connect
from tests.unit.actions.builders import set_weights
from tests.unit.actions.route_samples import CUSTOM, NAMES, SAMPLES, Sample

every_kind = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


class Dies:
    """An API whose user is gone before its write, or after it: the result is not seen by its user."""

    def __init__(self, api: Kubernetes, *, after: bool) -> None:
        self._api = api
        self._after = after

    async def json_patch(self, path: str, operations: Any) -> Any:
        if self._after:
            await self._api.json_patch(path, operations)
        raise asyncio.CancelledError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


@pytest.fixture
def east(emulator: Emulator) -> EmulatedCluster:
    return emulator.cluster("east", crds=[*shipped(), pools()])


def weights_now(sample: Sample, east: EmulatedCluster) -> dict[str, int]:
    entries = backends_of(sample.described, east.get(sample.described.plural, "checkout", "shop"), sample.ref())
    weights = weights_of(sample.described, entries)
    return dict(zip([entry.service for entry in entries], weights, strict=True))


def our_writes(sample: Sample, emulator: Emulator) -> int:
    return len(emulator.writes.effective(sample.described.plural, manager="alert-reactor"))


@every_kind
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_an_executor_that_dies_at_its_write_is_followed_by_one_that_ends_it(
    east: EmulatedCluster, emulator: Emulator, connected: Connect, sample: Sample, after: bool
) -> None:
    east.create(sample.object([sample.whole, 0]))
    api, action = await connected("east"), set_weights({"p": 0, "s": sample.whole}, sample.ref())
    with pytest.raises(asyncio.CancelledError):
        await carry_out(Dies(api, after=after), action, Clock(), custom=CUSTOM)
    done = await carry_out(await connected("east"), action, Clock(), custom=CUSTOM)
    assert (done.status, done.wrote) == ("Done", not after), done.detail
    assert our_writes(sample, emulator) == 1
    assert weights_now(sample, east) == {"p": 0, "s": sample.whole} | sample.others


@every_kind
async def test_a_write_whose_answer_is_lost_is_not_doubled(
    east: EmulatedCluster, emulator: Emulator, connected: Connect, sample: Sample
) -> None:
    east.create(sample.object([sample.whole, 0]))
    api, action = await connected("east"), set_weights({"p": 0, "s": sample.whole}, sample.ref())
    east.faults.add(Fault(LoseAnswer(), verb="patch", resource=sample.described.plural, count=1))
    done = await carry_out(api, action, Clock(), custom=CUSTOM)
    assert (done.status, done.wrote) == ("Done", True), done.detail
    assert our_writes(sample, emulator) == 1
    assert weights_now(sample, east) == {"p": 0, "s": sample.whole} | sample.others


@every_kind
async def test_a_late_repeat_does_not_undo_what_another_writer_has_done_since(
    east: EmulatedCluster, connected: Connect, sample: Sample
) -> None:
    east.create(sample.object([sample.whole, 0]))
    api, action = await connected("east"), set_weights({"p": 0, "s": sample.whole}, sample.ref())
    assert (await carry_out(api, action, Clock(), custom=CUSTOM)).wrote
    home = sample.object([sample.whole, 0])["spec"]
    path = f"/apis/{sample.described.group}/{sample.described.versions[0]}/namespaces/shop/{sample.described.plural}"
    await api.json_patch(f"{path}/checkout", [{"op": "replace", "path": "/spec", "value": home}])
    late = await carry_out(api, action, Clock(), custom=CUSTOM)
    assert (late.status, late.reason) == ("Refused", "AlreadyDone")
    assert weights_now(sample, east) == {"p": sample.whole, "s": 0} | sample.others
