"""A route that a watch of this process holds is written without being read first, and never on an old view."""

from __future__ import annotations

import copy

from reactor.actions.traffic.route_weights import carry_out
from reactor.clients.copies import copy_of, holding
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator, Fault, Forbid, JsonObject
from reactor.runtime.clock import Clock
from reactor.sources.kubernetes.route_inventory import project
from tests.integration.actions.scene import FAILOVER, STANDS, our_writes, standing
from tests.unit.actions.builders import set_weights, split

COLLECTION = "/apis/split.smi-spec.io/v1alpha2/trafficsplits"
IN_SHOP = "/apis/split.smi-spec.io/v1alpha2/namespaces/shop/trafficsplits"


def held(east: EmulatedCluster) -> JsonObject:
    return project(copy.deepcopy(east.get("trafficsplits", "checkout", "shop")))


async def test_it_is_written_without_being_read(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    known = held(east)
    east.faults.add(Fault(Forbid(), verb="get", resource="trafficsplits"))
    with holding(api, COLLECTION, lambda _: known):
        outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.wrote, our_writes(emulator)) == ("Done", True, 1)
    assert dict(standing(east)) == FAILOVER


async def test_an_old_copy_writes_nothing_and_the_route_is_read(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(split(STANDS))
    known = held(east)
    newer = set_weights(FAILOVER, generation=9)
    assert (await carry_out(api, newer, Clock())).wrote
    with holding(api, COLLECTION, lambda _: known):
        outcome = await carry_out(api, set_weights({"p": 1, "s": 0}, generation=8), Clock())
    assert (outcome.status, outcome.reason, our_writes(emulator)) == ("Refused", "Stale", 1)


async def test_a_copy_without_a_version_is_not_written_on(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    """No write could test it: the route is read, which tells that a newer decision is recorded."""
    east.create(split(STANDS))
    known = held(east)
    del known["metadata"]["resourceVersion"]
    assert (await carry_out(api, set_weights(FAILOVER, generation=9), Clock())).wrote
    east.patch("trafficsplits", "checkout", {"spec": {"backends": split(STANDS)["spec"]["backends"]}}, "shop")
    with holding(api, COLLECTION, lambda _: known):
        outcome = await carry_out(api, set_weights(FAILOVER, generation=8), Clock())
    assert (outcome.status, outcome.reason, our_writes(emulator)) == ("Refused", "Stale", 1)


async def test_that_nothing_is_to_be_done_is_read_and_not_concluded(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(split([("p", 0), ("s", 1)]))
    known = held(east)
    east.patch("trafficsplits", "checkout", {"spec": {"backends": split(STANDS)["spec"]["backends"]}}, "shop")
    with holding(api, COLLECTION, lambda _: known):
        outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.wrote, dict(standing(east))) == (True, FAILOVER)


async def test_a_copy_is_found_by_the_namespace_or_in_all_of_them(api: KubeApi) -> None:
    found = {"metadata": {"name": "checkout"}}
    for collection in (COLLECTION, IN_SHOP):
        with holding(api, collection, lambda key: found if key == ("shop", "checkout") else None):
            assert copy_of(api, f"{IN_SHOP}/checkout") is found
            assert copy_of(api, f"{IN_SHOP}/other") is None
        assert copy_of(api, f"{IN_SHOP}/checkout") is None
