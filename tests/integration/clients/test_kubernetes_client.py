"""Requests of our client to a Kubernetes API, and its handling of the answers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from reactor.clients.api_transport import ApiTransport
from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_api import Kubernetes, connect
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound
from reactor.demo.kube import (
    Delay,
    EmulatedCluster,
    Emulator,
    Fault,
    Forbid,
    Hang,
    Html,
    JsonObject,
    LoseAnswer,
    Reset,
    StatusFault,
)
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import ClusterSettings as ClusterSettings

SPLITS = "/apis/split.smi-spec.io/v1alpha2/namespaces/shop/trafficsplits"
CHECKOUT = f"{SPLITS}/checkout"


@pytest.fixture(autouse=True)
async def split(east: EmulatedCluster) -> JsonObject:
    """A route with a primary and a standby."""
    return east.create({
        "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
        "metadata": {"name": "checkout", "namespace": "shop", "labels": {"app": "shop"}},
        "spec": {
            "service": "checkout",
            "backends": [{"service": "checkout", "weight": 1}, {"service": "checkout-west", "weight": 0}],
        },
    })  # fmt: skip


def moved(seen: int) -> list[JsonObject]:
    """Move the primary's weight to 0, if it is as it was seen."""
    path = "/spec/backends/0/weight"
    return [{"op": "test", "path": path, "value": seen}, {"op": "replace", "path": path, "value": 0}]


async def test_an_object_is_read_as_it_is(api: Kubernetes) -> None:
    found = await api.get(CHECKOUT)
    assert found["spec"]["backends"][1] == {"service": "checkout-west", "weight": 0}


async def test_a_list_has_every_page(api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.clients.kubernetes_api.PAGE_OBJECTS", 2)
    for number in range(5):
        metadata = {"name": f"c{number}", "namespace": "shop", "labels": {"odd": str(number % 2)}}
        east.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert len(await api.list("/api/v1/namespaces/shop/configmaps")) == 5
    assert len(await api.list("/api/v1/namespaces/shop/configmaps", label_selector="odd=0")) == 3


async def test_a_patch_whose_test_holds_is_written_in_our_name(api: Kubernetes, emulator: Emulator) -> None:
    changed = await api.json_patch(CHECKOUT, moved(seen=1))
    assert changed["spec"]["backends"][0]["weight"] == 0
    managers = {entry["manager"] for entry in changed["metadata"]["managedFields"]}
    assert "alert-reactor" in managers


async def test_a_patch_whose_test_fails_is_a_conflict(api: Kubernetes) -> None:
    with pytest.raises(Conflict, match=r"east: PATCH .*checkout was answered 422"):
        await api.json_patch(CHECKOUT, moved(seen=5))


async def test_a_patch_that_breaks_the_schema_is_invalid(api: Kubernetes) -> None:
    with pytest.raises(Invalid, match="is invalid"):
        await api.json_patch(CHECKOUT, [{"op": "replace", "path": "/spec/service", "value": 7}])


async def test_an_object_is_created_once(api: Kubernetes, east: EmulatedCluster) -> None:
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "TrafficSplit", "name": "checkout", "namespace": "shop"}, "reason": "Moved",
    }  # fmt: skip
    created = await api.create("/api/v1/namespaces/shop/events", event)
    assert created["metadata"]["uid"]
    with pytest.raises(Conflict, match="already exists"):
        await api.create("/api/v1/namespaces/shop/events", event)


async def test_what_is_not_there_is_not_found(api: Kubernetes) -> None:
    with pytest.raises(NotFound, match=r'east: GET .*/nothing was answered 404: .*"nothing" not found'):
        await api.get(f"{SPLITS}/nothing")
    with pytest.raises(NotFound):
        await api.get("/apis/karmada.io/v1/things")


async def test_a_missing_permission_says_what_to_grant(api: Kubernetes, east: EmulatedCluster) -> None:
    east.faults.add(Fault(Forbid()))
    grant = r"grant the verb 'patch' on resource 'trafficsplits' of API group 'split.smi-spec.io' in namespace 'shop'"
    with pytest.raises(Forbidden, match=grant):
        await api.json_patch(CHECKOUT, moved(seen=1))


async def test_an_overloaded_server_says_when_to_come_back(api: Kubernetes, east: EmulatedCluster) -> None:
    east.faults.add(Fault(StatusFault(429, retry_after=7)))
    with pytest.raises(ApiUnavailable) as refused:
        await api.get(CHECKOUT)
    assert refused.value.after == 7


@pytest.mark.parametrize("effect", [StatusFault(500), StatusFault(503), Html(502), Html(200), Reset(), LoseAnswer()])
async def test_no_usable_answer_is_worth_another_try(api: Kubernetes, east: EmulatedCluster, effect: Any) -> None:
    handle = east.faults.add(Fault(effect))
    with pytest.raises(ApiUnavailable, match="east: GET "):
        await api.get(CHECKOUT)
    handle.remove()
    assert await api.get(CHECKOUT)


async def test_a_server_that_never_answers_is_given_up(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ApiTransport.text.__kwdefaults__ or {}, "seconds", 0.1)
    east.faults.add(Fault(Hang()))
    with pytest.raises(ApiUnavailable, match="got no answer"):
        await api.get(CHECKOUT)


async def test_a_read_that_hangs_is_left_when_the_server_answers_again_and_a_write_is_not(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.clients.hanging.ASK_SECONDS", 0.1)
    monkeypatch.setattr("reactor.clients.api_transport.ANSWER_SECONDS", 0.2)
    frozen = east.faults.add(Fault(Hang()))
    reading = asyncio.create_task(api.get(CHECKOUT))
    while frozen.hits < 3:  # itself, and two small ones that got no answer
        await asyncio.sleep(0.01)
    writing = asyncio.create_task(api.json_patch(CHECKOUT, []))
    while frozen.hits < 5:
        await asyncio.sleep(0.01)
    frozen.remove()
    with pytest.raises(ApiUnavailable, match="hangs, on a server that answers again"):
        await reading
    assert not writing.done(), "nobody knows yet what has come of it"
    writing.cancel()


async def test_a_read_of_one_object_that_hangs_while_others_are_answered_is_left(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.clients.hanging.ASK_SECONDS", 0.1)
    east.faults.add(Fault(Hang(), count=1))
    with pytest.raises(ApiUnavailable, match="hangs, on a server that answers other requests"):
        await api.get(CHECKOUT)


async def test_a_page_that_is_lost_while_others_are_answered_is_left_and_the_next_one_comes(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.clients.hanging.ASK_SECONDS", 0.1)
    east.faults.add(Fault(Hang(), count=1))
    with pytest.raises(ApiUnavailable, match="hangs, on a server that answers other requests"):
        await api.page("/api/v1/services", {"limit": "500"})
    assert (await api.page("/api/v1/services", {"limit": "500"})).version


async def test_a_slow_page_behind_a_quick_one_is_waited_for(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.clients.hanging.ASK_SECONDS", 0.1)
    for name in ("one", "two"):
        east.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"}})
    first = await api.page("/api/v1/services", {"limit": "1"})
    slow = east.faults.add(Fault(Delay(2.0), count=1))
    await api.page("/api/v1/services", {"limit": "1", "continue": first.token})
    assert slow.hits == 1


async def test_a_server_that_is_not_there_is_unavailable(kubeconfig: Callable[..., Path]) -> None:
    api = await connect("east", ClusterSettings(kubeconfig=kubeconfig("http://127.0.0.1:1")))
    with pytest.raises(ApiUnavailable, match="east: GET /version got no answer"):
        await api.get("/version")
    await api.close()


@pytest.fixture
async def guarded(emulator: Emulator, kubeconfig: Callable[..., Path]) -> AsyncIterator[Kubernetes]:
    """A client of a cluster that wants a token, which has run out: the file holds a newer one."""
    emulator.cluster("guarded", token="new")
    kubeconfig(emulator.url("guarded"), token="old")
    api = await connect("guarded", ClusterSettings(kubeconfig=kubeconfig(emulator.url("guarded"), token="old")))
    kubeconfig(emulator.url("guarded"), token="new")
    yield api
    await api.close()


async def test_credentials_that_have_run_out_are_read_again(guarded: Kubernetes) -> None:
    answers = await asyncio.gather(*[guarded.get("/version") for _ in range(5)])
    assert all(answer["major"] == "1" for answer in answers)


async def test_a_token_file_may_end_with_a_line_break(
    emulator: Emulator, kubeconfig: Callable[..., Path], tmp_path: Path
) -> None:
    """As `kubectl create token reactor > token` writes it."""
    emulator.cluster("guarded", token="new")
    (tmp_path / "token").write_text("new\n")
    api = await connect("guarded", ClusterSettings(kubeconfig=kubeconfig(emulator.url("guarded"), tokenFile="token")))
    assert await api.get("/version")
    await api.close()


async def test_a_token_that_no_request_can_carry_is_a_matter_of_credentials(
    emulator: Emulator, kubeconfig: Callable[..., Path]
) -> None:
    emulator.cluster("guarded", token="new")
    settings = ClusterSettings(kubeconfig=kubeconfig(emulator.url("guarded"), token="ne\nw"))
    api = await connect("guarded", settings)
    with pytest.raises(Forbidden, match="a line break inside of the token"):
        await api.get("/version")
    await api.close()


async def test_credentials_are_read_beside_the_event_loop(
    emulator: Emulator, kubeconfig: Callable[..., Path], tmp_path: Path
) -> None:
    """They may lie on a network that hangs: here a pipe, which gives nothing until this very loop writes to it."""
    emulator.cluster("guarded", token="new")
    os.mkfifo(tmp_path / "token")
    settings = ClusterSettings(kubeconfig=kubeconfig(emulator.url("guarded"), tokenFile="token"))
    rescue = threading.Timer(20, _written, [tmp_path / "token", "late"])  # so that this test ends where they are not
    rescue.start()
    connecting = asyncio.create_task(connect("guarded", settings))
    while not _written(tmp_path / "token", "new"):
        await asyncio.sleep(0.01)
    rescue.cancel()
    api = await connecting
    assert (await api.get("/version"))["major"] == "1"
    await api.close()


def _written(pipe: Path, text: str) -> bool:
    """Write to it, if it is being read."""
    try:
        end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(end, "w") as file:
        file.write(text)
    return True


async def test_credentials_that_stay_wrong_are_read_again_only_once(
    emulator: Emulator, kubeconfig: Callable[..., Path]
) -> None:
    emulator.cluster("guarded", token="new")
    settings = ClusterSettings(kubeconfig=kubeconfig(emulator.url("guarded"), token="old"))
    api = await connect("guarded", settings)
    for _ in range(2):
        with pytest.raises(Forbidden, match="check its kubeconfig and context"):
            await api.get("/version")
    await api.close()


@pytest.mark.parametrize(
    ("text", "context"),
    [
        (None, None),
        ("", None),
        ("clusters: [", None),
        ("just: text", None),
        (..., "elsewhere"),
        ("a: " + "[" * 5000, None),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_says_what_to_mend(
    tmp_path: Path, kubeconfig: Callable[..., Path], text: Any, context: str | None
) -> None:
    path = tmp_path / "config"
    if text is ...:
        path = kubeconfig("http://127.0.0.1:1")
    elif text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=r"clusters.east: cannot use kubeconfig .* Set clusters.east.kubeconfig"):
        await connect("east", ClusterSettings(kubeconfig=path, context=context))


async def test_outside_a_cluster_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match="the in-cluster service account"):
        await connect("east", ClusterSettings())


async def test_a_cluster_is_connected_once_for_all_who_ask(
    emulator: Emulator, east: EmulatedCluster, kubeconfig: Callable[..., Path]
) -> None:
    clusters = Clusters({"east": ClusterSettings(kubeconfig=kubeconfig(emulator.url("east")))})
    first, second = await asyncio.gather(clusters.get("east"), clusters.get("east"))
    assert first is second
    with pytest.raises(SettingsError, match=r"clusters.west: .* \(they name: east\)"):
        await clusters.get("west")
    await clusters.close()


@pytest.fixture
async def hangs(tmp_path: Path) -> AsyncIterator[JsonObject]:
    """A program for credentials that hangs until the test is over."""
    pids = tmp_path / "pids"
    yield {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", f"echo $$ >> {pids}; exec sleep 60"],
    }  # fmt: skip
    for pid in (await _pids(pids)).split():
        os.kill(int(pid), signal.SIGKILL)
        while Path("/proc", pid).exists():
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # its pipes are closed by the event loop


async def _pids(path: Path) -> str:
    """Text that the program has written, once it has begun: it is started by a thread."""
    async with asyncio.timeout(30):
        while not (path.exists() and (text := path.read_text("utf-8"))):
            await asyncio.sleep(0.01)
    return text


async def test_a_program_for_credentials_that_hangs_delays_no_other(
    emulator: Emulator, east: EmulatedCluster, tmp_path: Path, kubeconfig: Callable[..., Path], hangs: JsonObject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    hung = ClusterSettings(kubeconfig=kubeconfig("http://127.0.0.1:1", exec=hangs).rename(tmp_path / "hung"))
    good = ClusterSettings(kubeconfig=kubeconfig(emulator.url("east")))
    clusters = Clusters({"hung": hung, "east": good})
    waiting = asyncio.create_task(clusters.get("hung"))
    async with asyncio.timeout(10):
        assert await clusters.get("east") is await clusters.get("east")
    assert not waiting.done()
    waiting.cancel()
    monkeypatch.setattr("reactor.clients.loading.WAIT_SECONDS", 0.05)
    for _ in range(2):
        with pytest.raises(ApiUnavailable, match=r"clusters.hung: .* does the program hang"):
            await clusters.get("hung")
    await _pids(tmp_path / "pids")
    await clusters.close()


async def test_a_program_for_credentials_that_hangs_later_is_not_waited_for_by_every_call(
    guarded: Kubernetes, emulator: Emulator, kubeconfig: Callable[..., Path], hangs: JsonObject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    kubeconfig(emulator.url("guarded"), exec=hangs)
    monkeypatch.setattr("reactor.clients.loading.WAIT_SECONDS", 0.05)
    with pytest.raises(ApiUnavailable, match="does the program hang"):
        await guarded.get("/version")
    with pytest.raises(Forbidden):
        await guarded.get("/version")
