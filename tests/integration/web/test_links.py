"""Approvals by link: from the notification that a real executor posts to the rule that acts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bus.messages import Health
from bus.topology import LINKS
from reactor.actions.notify.approval_link import ApprovalLink, ApprovalLinks
from reactor.process.app import App
from reactor.settings.model import Settings
from tests.browser import ENTER, Browser, lost
from tests.integration.web.conftest import PAY, ROLES, RULES, WEST, Scene, running, settings, token

pytestmark = pytest.mark.long


@pytest.fixture
async def posts() -> AsyncIterator[tuple[str, asyncio.Queue[Any]]]:
    """URL of a chat, and the queue of posts to it."""
    got: asyncio.Queue[Any] = asyncio.Queue()

    async def take(request: web.BaseRequest) -> web.Response:
        await got.put(await request.json())
        return web.Response()

    runner = web.ServerRunner(web.Server(take))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", got
    await runner.cleanup()


def given(folder: Path, chat: str, **page: Any) -> Settings:
    found = settings(folder, users=True, url="https://reactor.example", **page)
    (folder / "rules.yaml").write_text(RULES.replace("tolerationSeconds: 0", "tolerationSeconds: 0\n  notify: [chat]"))
    return Settings.model_validate(
        {**found.model_dump(by_alias=True), "notifiers": {"chat": {"kind": "slack", "url": chat}}}
    )


@asynccontextmanager
async def asked(folder: Path, posts: tuple[str, asyncio.Queue[Any]], **page: Any) -> AsyncIterator[tuple[Scene, str]]:
    """A process that has told a chat what it asks for. Gives it, and the part of the link that counts."""
    async with running(given(folder, posts[0], **page), ROLES | {"executor"}) as scene:
        await scene.ask_for_approval()
        async with asyncio.timeout(60):
            said = json.dumps(await posts[1].get())
        yield scene, said.partition("<https://reactor.example/#/approve/")[2].partition("|")[0]


async def answer(scene: Scene, link: str, name: str, what: str = "approve") -> int:
    headers = {"Authorization": f"Bearer {token(name)}"}
    body = {"answer": what, "comment": "checked"}
    async with scene.http.post(f"{scene.url}/api/v1/approvals/{link}", json=body, headers=headers) as got:
        return got.status


async def look(scene: Scene, link: str) -> tuple[int, Any]:
    return await scene.get(f"/api/v1/approvals/{link}", Authorization=f"Bearer {token('vera')}")


async def test_a_link_approves_once_on_whichever_process_and_to_look_changes_nothing(
    tmp_path: Path, posts: tuple[str, asyncio.Queue[Any]]
) -> None:
    async with asked(tmp_path, posts) as (scene, link):
        assert (await scene.get(f"/api/v1/approvals/{link}"))[0] == 401
        for _ in range(3):
            status, body = await look(scene, link)
            assert (status, body["state"], body["rule"]) == (200, "open", "pay")
            assert "SetWeights" in body["plan"]
        assert await answer(scene, link, "vera") == 403  # the link gives no rights
        server = scene.app.server
        assert server is not None
        (tmp_path / "other").mkdir()
        other = given(tmp_path / "other", posts[0])
        other = other.model_copy(update={"name": "b", "bus": other.bus.model_copy(update={"url": server.url})})
        async with App(other, frozenset({"web"})) as app:
            second = Scene(app, scene.publisher, scene.http)
            await second.group("pay", lambda row: row["hold"])
            both = await asyncio.gather(answer(scene, link, "anna"), answer(second, link, "otto"))
            assert sorted(both) in ([202, 409], [202, 410])
            assert await answer(second, link, "anna") in (409, 410)
        headers = {"Authorization": f"Bearer {token('vera')}"}
        async with asyncio.timeout(60):
            while not (acts := (await scene.get("/api/v1/actions?rule=pay&type=SetWeights", **headers))[1]["actions"]):
                await asyncio.sleep(0.05)
        who = "anna" if both[0] == 202 else "otto"
        assert acts[0]["by"] == [who]
        assert (await look(scene, link))[1]["used"].startswith(f"approved by {who}")


async def test_a_link_counts_for_its_plan_its_time_and_its_signature_only(
    tmp_path: Path, posts: tuple[str, asyncio.Queue[Any]]
) -> None:
    async with asked(tmp_path, posts) as (scene, link):
        day, body, signature = link.split(".")
        forged = ("x", f"{day}.{body}", f"{day}.{body}.{signature[:-4]}AAAA", f"{day}.{body[:-2]}A.{signature}",
                  f"2020-01-01.{body}.{signature}", f"../../keys.{body}.{signature}", "%00.%00.%00")  # fmt: skip
        for one in forged:
            assert (await look(scene, one))[0] in (404, 410), one
            assert await answer(scene, one, "anna") in (404, 410), one
        links = ApprovalLinks(scene.app.bus.store(LINKS))
        found: ApprovalLink = await links.read(link, scene.app.clock.now())
        with pytest.raises(Exception, match="time of this link is over"):
            await links.read(link, found.until)
        await scene.see(WEST, Health.UNHEALTHY)  # the plan is another one, or none
        await scene.see(PAY, Health.HEALTHY)
        await scene.group("pay", lambda row: row["request"] != found.request)
        assert (await look(scene, link))[1]["state"] == "changed"
        assert await answer(scene, link, "anna") == 409


async def clock_of(browser: Browser, plan: str) -> str:
    """Give the time behind "until" as the browser shows it."""
    shown: str = await browser.ask(f"new Date('{plan.split('until ')[1]}').toLocaleTimeString('en-GB')")
    return shown


async def test_a_person_follows_a_link_signs_in_and_approves(
    tmp_path: Path, posts: tuple[str, asyncio.Queue[Any]], browser: Browser
) -> None:
    async with asked(tmp_path, posts) as (scene, link):
        await browser.go(f"{scene.url}/#/approve/{link}")
        await browser.until("document.querySelector('input[name=token]') !== null")
        await browser.ask("document.querySelector('input[name=token]').focus()")
        await browser.press(*token("anna"), ENTER)
        await browser.until("document.querySelector('input[name=comment]') !== null")
        # The request is over in 15 minutes, the link in a day: one time is shown, and it is the first.
        plan = (await look(scene, link))[1]["plan"]
        said = "document.querySelector('.deadline').innerText + document.querySelector('.deadline time').dateTime"
        assert (
            await browser.ask(said) == f"The request ends at {await clock_of(browser, plan)}.{plan.split('until ')[1]}"
        )
        assert await browser.ask("document.querySelector('main').innerText.match(/ends at|until/g).length") == 1
        await browser.looks("link")
        await browser.ask("document.querySelector('input[name=comment]').focus()")
        await browser.press(*"checked", ENTER)
        await browser.until("document.querySelector('h1')?.textContent === 'Approved'")
        await browser.until("document.querySelector('.card')?.textContent.includes('approved by anna')")
        assert "the write is still to come" in await browser.ask("document.querySelector('.card').textContent")
        await browser.looks("link_used")
        assert browser.violations() == []


async def test_the_page_of_a_link_keeps_what_was_typed_while_the_reactor_does_not_answer(
    tmp_path: Path, posts: tuple[str, asyncio.Queue[Any]], browser: Browser
) -> None:
    async with asked(tmp_path, posts) as (scene, link):
        await browser.go(f"{scene.url}/#/approve/{link}")
        await browser.until("document.querySelector('input[name=token]') !== null")
        await browser.ask("document.querySelector('input[name=token]').focus()")
        await browser.press(*token("anna"), ENTER)
        await browser.until("document.querySelector('input[name=comment]') !== null")
        await browser.ask("document.querySelector('input[name=comment]').focus()")
        await browser.press(*"checked")
        await browser.page.route("**/api/v1/approvals/*", lost)
        await browser.until("document.querySelector('main [role=alert]')?.textContent.includes('did not answer')")
        assert await browser.ask("document.querySelector('input[name=comment]').value") == "checked"
        await browser.looks("link_lost")
        await browser.page.unroute("**/api/v1/approvals/*")
        await browser.until("document.querySelector('main [role=alert]') === null")
        await browser.ask("document.querySelector('input[name=comment]').focus()")
        await browser.press(ENTER)
        await browser.until("document.querySelector('h1')?.textContent === 'Approved'")
