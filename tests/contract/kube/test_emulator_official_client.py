"""The official client's low-level transport against the emulator: the way the reactor itself goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.kube.objects import config_map
from tests.kube.api import JSON_PATCH, Api

client = pytest.importorskip("kubernetes.aio.client")


async def _call(api: Any, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    arguments = await api.param_serialize(
        method, path, header_params={"Accept": "application/json", **headers}, body=body, auth_settings=["BearerToken"]
    )
    answer = (await api.call_api(*arguments)).response
    text = await answer.read()
    answer.release()
    return answer.status, json.loads(text)


async def test_the_official_client_reads_and_patches(api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.post(api.path("configmaps"), config_map("a", color="red"))
    async with client.ApiClient(client.Configuration(host=api.server.url)) as official:
        operations = [
            {"op": "test", "path": "/data/color", "value": "red"},
            {"op": "replace", "path": "/data/color", "value": "blue"},
        ]
        code, body = await _call(official, "PATCH", path, operations, **{"Content-Type": JSON_PATCH})
        assert (code, body["data"]) == (200, {"color": "blue"})
        code, body = await _call(official, "PATCH", path, operations, **{"Content-Type": JSON_PATCH})
        assert (code, body["reason"]) == (422, "Invalid")
        code, body = await _call(official, "GET", path)
        assert (code, body["data"]) == (200, {"color": "blue"})
