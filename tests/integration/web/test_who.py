"""User of a request, as a proxy or a Kubernetes API server names it: only from the proxy's address, only
with a grant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactor.settings.model import Settings
from tests.e2e.real_cluster import needs_one, real_cluster
from tests.integration.web.conftest import Scene, running, settings

GRANTS = [{"role": "view", "groups": ["staff"]}, {"role": "approve", "users": ["ann"]},
          {"role": "operate", "groups": ["oncall"]}]  # fmt: skip


async def role(scene: Scene, **headers: str) -> tuple[int, str]:
    status, _ = await scene.get("/api/v1/status", **headers)
    return status, (await scene.get("/api/v1/session", **headers))[1].get("role", "")


async def test_a_trusted_proxy_says_who_asks_and_grants_say_what_they_may(tmp_path: Path) -> None:
    proxy = {"addresses": ["127.0.0.1/32"], "userHeader": "X-Auth-Request-User"}
    async with running(settings(tmp_path, proxy=proxy, grants=GRANTS)) as scene:
        ann = {"X-Auth-Request-User": "ann"}
        assert await role(scene, **ann) == (200, "approve")
        assert await role(scene, **ann, **{"X-Forwarded-Groups": "staff, oncall"}) == (200, "operate")
        assert await role(scene, **{"X-Auth-Request-User": "eve"}) == (403, "")
        assert await role(scene) == (401, "")
        async with scene.http.post(
            f"{scene.url}/api/v1/commands/pause",
            json={"rule": "*", "comment": "x"},
            headers={**ann, "Origin": scene.url, "X-Forwarded-Groups": "oncall"},
        ) as answer:
            assert answer.status == 403  # another site cannot send X-CSRF-Token
        async with scene.http.post(
            f"{scene.url}/api/v1/commands/pause",
            json={"rule": "*", "comment": "x"},
            headers={**ann, "Origin": scene.url, "X-Forwarded-Groups": "oncall", "X-CSRF-Token": "proxy"},
        ) as answer:
            assert answer.status == 202  # the page's own script does


async def test_the_header_of_another_address_than_the_proxys_counts_for_nothing(tmp_path: Path) -> None:
    proxy = {"addresses": ["192.0.2.0/24"]}
    async with running(settings(tmp_path, proxy=proxy, grants=GRANTS)) as scene:
        assert await role(scene, **{"X-Forwarded-User": "ann"}) == (401, "")


@needs_one
async def test_an_api_server_says_whose_a_token_is(tmp_path: Path) -> None:
    async with real_cluster(tmp_path / "east", "base") as east:
        path = "/api/v1/namespaces/default/serviceaccounts"
        assert (await east.api.post(path, {"metadata": {"name": "bot"}})).code == 201
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await east.api.post(f"{path}/bot/token", asked)).body["status"]["token"]
        given = settings(tmp_path).model_dump(by_alias=True)
        given["web"] |= {"tokenReview": {"cluster": "east"}, "grants": [
            {"role": "operate", "users": ["system:serviceaccount:default:bot"]}]}  # fmt: skip
        admin: dict[str, Any] = {"kubeconfig": str(east.kubeconfig)}
        given["clusters"] = {"east": admin}
        allowed = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                   "metadata": {"name": "reviews"}, "subjects": [{"kind": "Group", "name": "system:authenticated",
                                                                  "apiGroup": "rbac.authorization.k8s.io"}],
                   "roleRef": {"kind": "ClusterRole", "name": "system:auth-delegator",
                               "apiGroup": "rbac.authorization.k8s.io"}}  # fmt: skip
        bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        assert (await east.api.post(bindings, allowed)).code == 201
        async with running(Settings.model_validate(given)) as scene:
            assert await role(scene, Authorization=f"Bearer {token}") == (200, "operate")
            assert await role(scene, Authorization=f"Bearer {token}x") == (401, "")
            assert await role(scene) == (401, "")


def test_grants_without_anything_that_signs_people_in_leave_the_page_closed_to_other_machines(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="open to other machines"):
        settings(tmp_path, listen="0.0.0.0:8490", url="https://reactor.example", grants=GRANTS)
