"""The real definitions of other projects, where a copy of them lies beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor.demo.kube import Emulator, StatusError
from reactor.demo.kube.crds import load_definitions, resources_of
from tests.contract.kube.test_emulator_world import http_route, traffic_split

FOLDER = Path(__file__).parents[4] / "shared" / "crds"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder shared/crds beside the repository")


async def test_real_definitions_are_served(sim: Emulator) -> None:
    definitions = tuple(load_definitions(sorted(FOLDER.glob("*.yaml"))))
    east = sim.cluster("east", crds=definitions)
    for definition in definitions:
        for resource in resources_of(definition):
            assert east.catalog.at(resource.group, resource.version, resource.plural).kind == resource.kind
            assert east.list(resource.qualified) == []


async def test_our_small_definitions_treat_our_objects_as_the_real_ones_do(sim: Emulator) -> None:
    real = sim.cluster("real", crds=tuple(load_definitions(sorted(FOLDER.glob("*.yaml")))))
    ours = sim.cluster("ours")
    for obj in (traffic_split("a"), traffic_split("b", "v1alpha1", "500m"), http_route("c")):
        assert real.create(obj)["spec"] == ours.create(obj)["spec"]
    for wrong in (traffic_split("d", "v1alpha2", "500m"), {**http_route("e"), "spec": {"rules": []}}):
        for cluster in (real, ours):
            with pytest.raises(StatusError) as refusal:
                cluster.create(wrong)
            assert refusal.value.code == 422
