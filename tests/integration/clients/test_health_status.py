"""The status of a health endpoint, whatever it is: an answer is no error here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reactor.clients import credential_loading
from reactor.clients.kubernetes_api import Kubernetes, connect
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.demo.kube import EmulatedCluster, Emulator, Fault, Hang, Reset, StatusFault
from reactor.settings.server_settings import ClusterSettings as ClusterSettings


async def test_a_healthy_server_answers_200(api: Kubernetes) -> None:
    assert await api.status("/readyz", seconds=5) == 200


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
async def test_any_answer_is_given_as_it_is(api: Kubernetes, east: EmulatedCluster, status: int) -> None:
    east.faults.add(Fault(StatusFault(status)))
    assert await api.status("/readyz", seconds=5) == status


@pytest.mark.parametrize("effect", [Hang(), Reset()], ids=repr)
async def test_no_answer_is_told_as_such(api: Kubernetes, east: EmulatedCluster, effect: Hang | Reset) -> None:
    east.faults.add(Fault(effect))
    with pytest.raises(ApiUnavailable, match="GET /readyz got no answer"):
        await api.status("/readyz", seconds=0.2)


async def test_credentials_that_have_run_out_are_read_again(
    emulator: Emulator, kubeconfig: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_loading, "REST_SECONDS_MAX", 0)
    emulator.cluster("guarded", token="new")
    settings = ClusterSettings(kubeconfig=kubeconfig(emulator.url("guarded"), token="old"))
    api = await connect("guarded", settings)
    assert await api.status("/readyz", seconds=5) == 401
    kubeconfig(emulator.url("guarded"), token="new")
    assert await api.status("/readyz", seconds=5) == 200
    await api.close()
