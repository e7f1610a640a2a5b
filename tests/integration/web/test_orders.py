"""Approve, reject, pause and resume on the page: who may, in whose name, and what another site cannot do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.web.conftest import Scene, Start, token


@pytest.fixture
async def scene(start: Start) -> Scene:
    return await start(users=True)


async def order(
    scene: Scene, verb: str, body: Any, name: str = "", to: str = "commands", **headers: str
) -> tuple[int, Any]:
    """Give a command with the token of a user, or with what the headers say."""
    if name:
        headers["Authorization"] = f"Bearer {token(name)}"
    async with scene.http.post(f"{scene.url}/api/v1/{to}/{verb}", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def answer_to(group: dict[str, Any]) -> dict[str, Any]:
    return {"rule": group["rule"], "object": group["object"], "request": group["request"], "comment": "checked"}


async def test_an_approval_is_recorded_in_the_name_of_who_signed_in(scene: Scene) -> None:
    group = await scene.ask_for_approval()
    status, _ = await order(scene, "approve", answer_to(group), "anna")
    assert status == 202
    headers = {"Authorization": f"Bearer {token('vera')}"}
    async with asyncio.timeout(60):
        while not (acts := (await scene.get("/api/v1/actions?rule=pay", **headers))[1]["actions"]):
            await asyncio.sleep(0.05)
    assert acts[0]["weights"] == {"pay": 0, "pay-west": 1}
    _, chain = await scene.get(f"/api/v1/actions/{acts[0]['id']}", **headers)
    # Where traffic moves a step after the approval, as when it waits for a fresh look, that is what was known before.
    said = [*chain["decision"], *chain["guards"]]
    assert any(line.startswith(("anna: Approve: checked", "approved by anna at")) for line in said), said


async def test_an_answer_counts_for_the_plan_that_was_shown_and_for_no_other(scene: Scene) -> None:
    group = await scene.ask_for_approval()
    for body, status in (
        ({**answer_to(group), "request": "another-plan"}, 409), ({**answer_to(group), "object": "other"}, 404),
        ({**answer_to(group), "comment": "  "}, 400), ({**answer_to(group), "by": "boss"}, 400),
        ({**answer_to(group), "comment": "a\u202eb"}, 400), ([], 400),
    ):  # fmt: skip
        assert (await order(scene, "approve", body, "anna"))[0] == status, body
    assert (await order(scene, "reject", {**answer_to(group), "forSeconds": 600}, "anna"))[0] == 202
    row = await scene.group("pay", lambda row: row["hold"] and row["hold"]["reason"] == "Rejected")
    assert "anna" in row["hold"]["detail"]


async def test_a_pause_holds_rules_until_it_is_resumed(scene: Scene) -> None:
    await scene.break_checkout()
    assert (await order(scene, "pause", {"rule": "check*", "comment": "maintenance"}, "otto"))[0] == 202
    row = await scene.group("checkout", lambda row: row["pause"])
    assert (row["pause"]["by"], row["pause"]["reason"]) == ('reactor as "otto"', "maintenance")  # its user on the bus
    assert (await order(scene, "resume", {"rule": "check*", "comment": "done"}, "otto"))[0] == 202
    await scene.group("checkout", lambda row: row["pause"] is None)


@pytest.mark.parametrize(("name", "verb", "status"), [
    ("vera", "approve", 403), ("vera", "pause", 403), ("anna", "pause", 403), ("anna", "resume", 403),
    ("anna", "failover-traffic", 403), ("anna", "isolate-zone", 403),
    ("", "pause", 401),
])  # fmt: skip
async def test_a_role_may_what_it_says_and_no_more(scene: Scene, name: str, verb: str, status: int) -> None:
    assert (await order(scene, verb, {"rule": "*", "comment": "x"}, name))[0] == status


async def test_without_users_no_person_may(start: Start) -> None:
    scene = await start()
    status, body = await order(scene, "pause", {"rule": "*", "comment": "x"}, Origin=scene.url)
    assert (status, "read-only" in body["error"]) == (403, True)


async def test_another_site_cannot_use_the_session_of_a_browser(scene: Scene) -> None:
    sign_in = {"Origin": scene.url}
    async with scene.http.post(f"{scene.url}/api/v1/session", json={"token": token("otto")}, headers=sign_in) as answer:
        csrf = (await answer.json())["csrf"]
    body = {"rule": "*", "comment": "x"}
    forged: tuple[dict[str, str], ...] = (
        {}, {"Origin": scene.url}, {"Origin": scene.url, "X-CSRF-Token": "0" * 64},
        {"X-CSRF-Token": csrf}, {"Origin": "https://evil.example", "X-CSRF-Token": csrf},
        {"Origin": "null", "X-CSRF-Token": csrf},
        {"Origin": scene.url, "X-CSRF-Token": csrf, "Sec-Fetch-Site": "cross-site"},
    )  # fmt: skip
    for headers in forged:
        assert (await order(scene, "pause", body, **headers))[0] == 403, headers
    form = {"Origin": scene.url, "X-CSRF-Token": csrf, "Content-Type": "text/plain"}
    async with scene.http.post(f"{scene.url}/api/v1/commands/pause", data=b'{"rule":"*"}', headers=form) as answer:
        assert answer.status == 415
    async with scene.http.get(f"{scene.url}/api/v1/commands/pause") as answer:
        assert answer.status == 405
    assert (await order(scene, "pause", body, **{"Origin": scene.url, "X-CSRF-Token": csrf}))[0] == 202


async def test_traffic_is_moved_by_hand_for_the_plan_that_was_shown_and_recorded_by_name(scene: Scene) -> None:
    await scene.break_checkout()
    wanted = {"rule": "checkout", "to": ["checkout-west"], "forSeconds": 600}
    status, shown = await order(scene, "failover-traffic", wanted, "otto", to="plans")
    assert (status, "checkout=1 checkout-west=0 → checkout=0 checkout-west=1" in shown["plan"]) == (200, True)
    assert (await order(scene, "failover-traffic", wanted, "anna", to="plans"))[0] == 403
    for changed, refused in (
        ({"plan": "another"}, 409), ({"rule": "none"}, 404), ({"to": ["\u202e"]}, 400), ({"to": ["-" * 1025]}, 400),
        ({"object": "other"}, 404),
    ):  # fmt: skip
        body = {**wanted, "comment": "drill", "plan": shown["fingerprint"], **changed}
        assert (await order(scene, "failover-traffic", body, "otto"))[0] == refused, changed
    body = {**wanted, "comment": "drill", "plan": shown["fingerprint"]}
    status, given = await order(scene, "failover-traffic", body, "otto")
    assert status == 202
    row = await scene.group("checkout", lambda row: row["command"] and row["command"]["at"] >= given["at"])
    assert row["command"]["answer"].startswith("followed, until ")
    assert (row["override"]["by"], row["override"]["reason"]) == ('reactor as "otto"', "drill")
    headers = {"Authorization": f"Bearer {token('vera')}"}
    async with asyncio.timeout(60):
        while not (acts := (await scene.get("/api/v1/actions?rule=checkout", **headers))[1]["actions"]):
            await asyncio.sleep(0.05)
    assert 'reactor as "otto"' in acts[0]["by"] or "otto" in acts[0]["by"]
    assert (await order(scene, "release-traffic", {"rule": "checkout", "comment": "done"}, "otto"))[0] == 202
    await scene.group("checkout", lambda row: row["override"] is None)
