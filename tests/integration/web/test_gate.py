"""The attacks on a page: requests of another site, a forged Host, an exposed start, markup in what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from reactor.runtime.errors import SettingsError
from reactor.settings.web_settings import Web
from reactor.web.page_access import Access
from tests.integration.web.conftest import XSS, Scene, Start, token


@pytest.mark.parametrize("given", [
    {"listen": "0.0.0.0:8490"},
    {"listen": "192.0.2.1:8490", "url": "https://reactor.example"},
    {"listen": "[::]:8490", "allowedHosts": ["reactor.example"]},
])  # fmt: skip
def test_it_does_not_start_exposed_without_users(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="open to other machines: set users"):
        Web.model_validate(given)


def test_it_does_not_start_exposed_without_its_host_names(tmp_path: Path) -> None:
    users = [{"name": "ann", "role": "view", "tokenFile": str(tmp_path / "ann")}]
    with pytest.raises(ValidationError, match="set url, or allowedHosts"):
        Web.model_validate({"listen": "0.0.0.0:8490", "users": users})
    Web.model_validate({"listen": "0.0.0.0:8490", "users": users, "url": "https://reactor.example"})


@pytest.mark.parametrize("content", ["", "short"])
def test_a_token_that_is_no_secret_stops_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "ann").write_text(content)
    with pytest.raises(SettingsError, match="ann"):
        Access(Web.model_validate({"users": [{"name": "ann", "tokenFile": str(tmp_path / "ann")}]}))


async def test_another_host_name_is_not_answered(start: Start) -> None:
    scene = await start()
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8490", ""):
        status, body = await scene.get("/api/v1/status", Host=host)
        assert (status, list(body)) == (421, ["error"]), host
    assert (await scene.get("/api/v1/status", Host="localhost:1234"))[0] == 200


async def test_each_answer_has_the_headers_that_keep_other_sites_out(start: Start) -> None:
    scene = await start()
    for path in ("/", "/static/app.js", "/api/v1/status", "/api/v1/events", "/nothing"):
        async with scene.http.get(f"{scene.url}{path}") as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy, path
            assert "require-trusted-types-for 'script'" in policy, path
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in answer.headers


async def test_without_users_all_is_read_only(start: Start) -> None:
    scene = await start()
    _, session = await scene.get("/api/v1/session")
    assert (session["signedIn"], session["role"], session["name"]) == (True, "view", "")


async def test_with_users_nothing_is_shown_to_strangers(start: Start) -> None:
    scene = await start(users=True)
    for path in ("/api/v1/status", "/api/v1/events", "/api/v1/members", "/api/v1/actions/x"):
        assert (await scene.get(path))[0] == 401, path
        assert (await scene.get(path, Authorization="Bearer wrong-wrong-wrong-wrong"))[0] == 401, path
        assert (await scene.get(path, Cookie="reactor_session=forged"))[0] == 401, path
    assert (await scene.get("/api/v1/status", Authorization=f"Bearer {token('vera')}"))[0] == 200


async def signed_in(scene: Scene, name: str) -> dict[str, Any]:
    async with scene.http.post(
        f"{scene.url}/api/v1/session", json={"token": token(name)}, headers={"Origin": scene.url}
    ) as answer:
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        body: dict[str, Any] = await answer.json()
        return body


async def test_a_session_counts_until_its_token_is_another(start: Start, tmp_path: Path) -> None:
    scene = await start(users=True)
    session = await signed_in(scene, "otto")
    assert (session["name"], session["role"]) == ("otto", "operate")
    assert (await scene.get("/api/v1/status"))[0] == 200
    (tmp_path / "otto").write_text("quite-another-token-of-otto")
    assert (await scene.get("/api/v1/status"))[0] == 401


@pytest.mark.parametrize("headers", [
    {}, {"Origin": "https://evil.example"}, {"Origin": "null"},
    {"Origin": "SAME", "Sec-Fetch-Site": "cross-site"},
])  # fmt: skip
async def test_another_site_cannot_sign_a_browser_in(start: Start, headers: dict[str, str]) -> None:
    scene = await start(users=True)
    sent = {name: scene.url if value == "SAME" else value for name, value in headers.items()}
    async with scene.http.post(f"{scene.url}/api/v1/session", json={"token": token("otto")}, headers=sent) as answer:
        assert answer.status == 403


async def test_markup_in_what_a_source_says_is_given_as_text(start: Start) -> None:
    scene = await start()
    row = await scene.break_checkout(XSS)
    assert row["windows"][0]["detail"] == XSS
    async with scene.http.get(f"{scene.url}/api/v1/status") as answer:
        assert answer.content_type == "application/json"
