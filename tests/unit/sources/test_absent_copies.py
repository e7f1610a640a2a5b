"""Targets of which a WorkloadWatch asks the server, as it knows no object of them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from reactor.clients.changes import ObjectKey
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, KubeApi, ObjectNotFound
from reactor.clients.reflector import Reflector
from reactor.runtime.errors import ReactorError
from reactor.sources.kubernetes.absent_copies import AbsentCopies
from reactor.sources.kubernetes.workload_kinds import ServedKind
from rules.rulefile.sources import WorkloadWatch

DEPLOYMENT = ServedKind("apps/v1", "Deployment", "deployments")


class Empty:
    """A cluster in which there is nothing, and its watch."""

    cluster = "east"
    path = "/apis/apps/v1/deployments"

    def __init__(self, *errors: ReactorError) -> None:
        """`errors`: answers to the first requests."""
        self.objects: dict[ObjectKey, Any] = {}
        self.asked: list[str] = []
        self._errors = [*errors]

    async def get(self, path: str) -> Any:
        self.asked.append(path.rpartition("/")[2])
        raise self._errors.pop(0) if self._errors else ObjectNotFound(path)


async def gone(kinds: tuple[Any, ...], target: str) -> list[str]:
    """The targets that are said to be gone."""
    said: list[str] = []

    async def say_gone(_: ServedKind, key: ObjectKey, target: str) -> None:
        said.append(target)

    source = WorkloadWatch(name="w", kind="WorkloadWatch", cluster="east", kinds=kinds)
    empty = Empty()
    absent = AbsentCopies(source, cast("KubeApi", empty), {DEPLOYMENT: cast("Reflector", empty)}, say_gone)
    running = asyncio.create_task(absent.run())
    absent.ask([target])
    await settled()
    running.cancel()
    return said


async def settled() -> None:
    """Let all tasks go on as far as they can: nothing here waits for anything."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_copy_that_the_server_does_not_have_is_gone() -> None:
    assert await gone(("Deployment",), "workload/east/shop/Deployment/web") == ["workload/east/shop/Deployment/web"]


@pytest.mark.parametrize("name", ["..", ".", "-web", "x" * 300, "Web"])
async def test_what_is_no_name_is_not_asked_for(name: str) -> None:
    assert await gone(("Deployment",), f"workload/east/shop/Deployment/{name}") == []


async def test_a_kind_whose_name_two_api_groups_have_is_not_known_to_be_gone() -> None:
    """The other one may be there, and make the same target."""
    kinds = ("Deployment", {"apiVersion": "example.org/v1", "kind": "Deployment"})
    assert await gone(kinds, "workload/east/shop/Deployment/web") == []


@pytest.mark.parametrize(("error", "asked"), [(ApiUnavailable("away"), ["a"]), (Forbidden("no get"), ["a", "b", "c"])])
async def test_a_server_that_does_not_answer_is_not_asked_for_one_after_the_other(
    error: ReactorError, asked: list[str]
) -> None:
    """A thousand requests that time out would hold up the next ones for minutes."""
    east, said = Empty(error), list[str]()

    async def say_gone(_: ServedKind, key: ObjectKey, target: str) -> None:
        said.append(key.name)

    source = WorkloadWatch(name="w", kind="WorkloadWatch", cluster="east", kinds=("Deployment",))
    absent = AbsentCopies(source, cast("KubeApi", east), {DEPLOYMENT: cast("Reflector", east)}, say_gone)
    running = asyncio.create_task(absent.run())
    absent.ask([f"workload/east/shop/Deployment/{name}" for name in "abc"])
    await settled()
    assert (east.asked, said) == (asked, asked[1:])
    running.cancel()
