"""Answers of the API, from a real nats-server, and the changes that reach its followers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import jsonschema
import pytest

from bus import subjects
from bus.envelope import encode
from bus.messages import Approve, Health, Outcome
from bus.port import Outgoing
from bus.topology import GROUPS
from reactor.runtime.supervise import ended
from reactor.settings.model import Settings
from reactor.web import stream
from reactor.web.api_document import document
from reactor.web.board import Board, framed
from rules.core.group import Group, NoState
from rules.engine.group_codec import dump_group
from rules.loader import RuleSet
from tests.integration.web.conftest import EAST, Scene, Start, settings


@pytest.fixture
async def scene(start: Start) -> Scene:
    return await start()


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    """Each event of a stream, with its data."""
    kind = ""
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            kind = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield kind, json.loads(text.removeprefix("data: "))


async def test_a_window_is_given_with_its_length_and_with_what_follows(scene: Scene) -> None:
    row = await scene.break_checkout()
    [window] = row["windows"]
    assert (window["target"], window["towards"], window["seconds"]) == (EAST, "Unhealthy", 300)
    assert 0 < row["secondsLeft"] <= 300
    assert row["next"] == f"checkout moves traffic away from {EAST} to checkout-west"
    assert row["backends"][0] == {"service": "checkout", "weight": 1, "target": EAST}


async def test_a_change_reaches_a_viewer_without_a_question(scene: Scene) -> None:
    await scene.break_checkout()
    async with asyncio.timeout(60), scene.http.get(f"{scene.url}/api/v1/events") as answer:
        assert answer.content_type == "text/event-stream"
        stream_ = events(answer)
        kind, state = await anext(stream_)
        assert kind == "state"
        assert {one["rule"]: one["state"] for one in state["groups"]}["checkout"] == "Tolerating"
        await scene.see(EAST, Health.HEALTHY)
        async for kind, data in stream_:
            if kind == "change" and ("checkout", "Watching") in {(one["rule"], one["state"]) for one in data["groups"]}:
                break


async def test_a_stream_without_changes_says_each_second_that_it_lives(scene: Scene) -> None:
    async with asyncio.timeout(60), scene.http.get(f"{scene.url}/api/v1/events") as answer:
        async for kind, data in events(answer):
            if kind == "beat":
                assert data["problem"] == ""
                break


async def test_a_viewer_who_does_not_read_is_let_go_and_slows_no_other(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "WRITE_SECONDS", 0.5)
    host, _, port = scene.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=64)
    writer.write(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    await writer.drain()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    board = scene.app.page.board  # type: ignore[union-attr]
    big = framed("change", {"now": "", "groups": [], "gone": ["x" * 2_000_000], "actions": []})
    async with asyncio.timeout(60), scene.http.get(f"{scene.url}/api/v1/events") as answer:
        live = scene.app.page.live  # type: ignore[union-attr]
        while live.viewers < 2:
            await asyncio.sleep(0.01)
        while live.viewers > 1:
            board.batches.add(big)
            await answer.content.readany()  # the other one goes on
            await asyncio.sleep(0.01)
    writer.close()
    assert reader is not None


async def test_a_group_that_is_removed_while_nothing_follows_leaves_the_page(scene: Scene) -> None:
    await scene.break_checkout()
    store = scene.app.bus.store(GROUPS)
    ghost = Group("ghost", "gone", NoState())
    await store.put("99.group.ghost", dump_group(ghost), revision=None)  # in a partition without an owner
    board = Board(scene.app.bus, scene.app.clock, RuleSet)

    async def follow_until(there: bool) -> None:
        following = asyncio.create_task(board.follow_groups())
        async with asyncio.timeout(60):
            while ("ghost" in {group.rule for group in board.groups()}) is not there:
                await asyncio.sleep(0.05)
        await ended(following)

    await follow_until(True)
    await store.delete("99.group.ghost", revision=None)
    await follow_until(False)
    assert "checkout" in {group.rule for group in board.groups()}


async def test_more_viewers_than_allowed_are_refused(start: Start) -> None:
    scene = await start(viewersMax=1)
    async with scene.http.get(f"{scene.url}/api/v1/events") as first:
        assert first.status == 200
        assert (await scene.get("/api/v1/events"))[0] == 503


async def test_an_action_is_listed_with_its_outcome_filtered_and_explained(scene: Scene) -> None:
    await scene.ask_for_approval()
    await scene.break_checkout()
    group = await scene.group("pay", lambda row: row["request"])
    now = scene.app.clock.now()
    fact = Approve(rule="pay", object=group["object"], request=group["request"], by="ann", reason="x", observed_at=now)
    body = encode(fact, id="one", source="/test", time=now)
    await scene.app.bus.publish(Outgoing(subjects.command("approve", scene.app.bus.user), body, "one"))
    async with asyncio.timeout(60):
        while not (acts := (await scene.get("/api/v1/actions?rule=pay"))[1]["actions"]):
            await asyncio.sleep(0.05)
    act = acts[0]
    assert (act["action"], act["rule"], act["weights"], act["outcome"]) == (
        "SetWeights", "pay", {"pay": 0, "pay-west": 1}, None,
    )  # fmt: skip
    await scene.publisher.publish(
        Outcome(action=act["id"], rule="pay", object=act["object"], status="Done", observed_at=scene.app.clock.now())
    )
    async with asyncio.timeout(60):
        while (await scene.get("/api/v1/actions?outcome=Done"))[1]["actions"] == []:
            await asyncio.sleep(0.05)
    for query in ("rule=checkout", "type=Notify", "outcome=Failed", "object=other", "since=2999-01-01T00:00:00Z"):
        assert (await scene.get(f"/api/v1/actions?{query}"))[1]["actions"] == [], query
    status, chain = await scene.get(f"/api/v1/actions/{act['id']}")
    assert status == 200
    assert any("HTTP 500" in line for line in chain["observations"])
    assert any("ann: Approve" in line for line in chain["decision"])
    assert (await scene.get("/api/v1/actions/pay/none"))[0] == 404


async def test_a_targets_timeline_has_its_observations_windows_and_rules(scene: Scene) -> None:
    await scene.break_checkout()
    _, found = await scene.get(f"/api/v1/targets/{EAST}")
    assert [one["status"] for one in found["observations"]] == ["Healthy", "Unhealthy"]
    assert [one["rule"] for one in found["groups"]] == ["checkout"]
    assert (await scene.get("/api/v1/targets/service/no/such/one"))[0] == 404


async def test_rules_members_and_the_map_are_there(scene: Scene) -> None:
    await scene.break_checkout()
    _, rules = await scene.get("/api/v1/rules")
    assert [(one["name"], one["mode"], one["tolerationSeconds"]) for one in rules["rules"]] == [
        ("checkout", "Enforce", 300), ("pay", "Approve", 0),
    ]  # fmt: skip
    assert rules["rules"][0]["place"].endswith("rules.yaml:4")
    _, members = await scene.get("/api/v1/members")
    assert [one["roles"] for one in members["processes"]] == [["decider", "router", "web"]]
    _, map_ = await scene.get("/api/v1/map")
    assert [one["name"] for one in map_["clusters"]] == ["east", "west"]
    [route] = map_["routes"]
    assert [(one["service"], one["cluster"], one["weight"]) for one in route["backends"]] == [
        ("checkout", "east", 1), ("checkout-west", "west", 0),
    ]  # fmt: skip


async def test_answers_are_as_the_document_says(scene: Scene) -> None:
    await scene.ask_for_approval()
    await scene.break_checkout()
    _, served = await scene.get("/api/v1/openapi.json")
    assert served == document()
    for path, item in served["paths"].items():
        if "get" not in item or "{" in path or path.endswith("events"):
            continue
        status, body = await scene.get(path)
        assert status == 200, path
        schema = item["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(body, {**schema, "components": served["components"]})


async def test_odd_questions_are_answered_with_a_sentence(scene: Scene) -> None:
    for path in ("/api/v1/actions?limit=0", "/api/v1/actions?limit=x", f"/api/v1/targets/{'x' * 2000}"):
        status, body = await scene.get(path)
        assert (status, list(body)) == (400, ["error"]), path
    status, body = await scene.get("/api/v1/nothing")
    assert (status, list(body)) == (404, ["error"])


async def test_a_process_of_its_own_shows_the_same(scene: Scene, tmp_path: Any) -> None:
    await scene.break_checkout()
    assert scene.app.server is not None
    (tmp_path / "other").mkdir()
    given: Settings = settings(tmp_path / "other")
    given = given.model_copy(
        update={"name": "other", "bus": given.bus.model_copy(update={"url": scene.app.server.url})}
    )
    from reactor.process.app import App

    async with App(given, frozenset({"web"})) as app, asyncio.timeout(60):
        other = Scene(app, scene.publisher, scene.http)
        row = await other.group("checkout", lambda row: row["state"] == "Tolerating")
    assert row["windows"][0]["target"] == EAST
