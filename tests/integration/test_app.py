"""The process as a whole, in this one: other rules while it runs, and rules under which nothing will start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from bus.errors import NotPermitted, Unavailable
from reactor.fleet import presence
from reactor.fleet.presence import present
from reactor.process import active_roles, reloading
from reactor.process.app import App, Died
from reactor.process.role_set import RoleSet
from reactor.route.router import Router
from reactor.runtime import supervise
from reactor.runtime.errors import SettingsError
from reactor.settings.model import Settings

ONE = "apiVersion: reactor/v1\nrules:\n- {name: one, kind: Notification, match: 'service/**'}\n"
TWO = ONE + "- {name: two, kind: Notification, match: 'cluster/*'}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "rules.yaml").write_text(ONE)
    return Settings.model_validate(
        {
            "ruleFiles": [str(tmp_path / "rules.yaml")], "name": "me", "receiver": {"listen": "127.0.0.1:0"},
            "bus": {"store": str(tmp_path / "nats"), "partitions": 4},
        }
    )  # fmt: skip


@pytest.fixture(autouse=True)
def only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "LOOK_SECONDS", 3600.0)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # what is waited for has no event of its own
            await asyncio.sleep(0.01)


class Picky(RoleSet):
    """A crew that does not start under some rules."""

    refuses: tuple[str, ...] = ("two",)

    async def __aenter__(self) -> RoleSet:
        if any(rule.name in self.refuses for rule in self._rules.rules):
            raise SettingsError("these rules ask for what is not here")
        return await super().__aenter__()


class Unanswered(RoleSet):
    """Roles whose first questions the bus does not answer in time."""

    left = 2
    says = Unavailable("no answer to CONSUMER within 2 s")

    async def __aenter__(self) -> RoleSet:
        if Unanswered.left > 0:
            Unanswered.left -= 1
            raise self.says
        return await super().__aenter__()


async def test_a_start_beside_a_slow_bus_tries_again_and_not_without_end(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_roles, "RoleSet", Unanswered)
    monkeypatch.setattr(active_roles, "AGAIN_SECONDS", 0.05)
    async with App(settings) as app:
        await until(lambda: app.decider is not None and app.decider.owned() == [0, 1, 2, 3])
    monkeypatch.setattr(Unanswered, "left", 2)
    monkeypatch.setattr(Unanswered, "says", NotPermitted("this user of the bus may not read that"))
    with pytest.raises(NotPermitted):
        async with App(settings):
            raise AssertionError("that does not pass by itself")
    monkeypatch.setattr(Unanswered, "left", 1_000_000)
    monkeypatch.setattr(Unanswered, "says", Unavailable("no answer to CONSUMER within 2 s"))
    monkeypatch.setattr(active_roles, "START_SECONDS", 0.2)
    with pytest.raises(Unavailable, match="no answer to CONSUMER"):
        async with App(settings):
            raise AssertionError("it did not start")


async def test_it_says_on_the_bus_which_rules_it_uses(settings: Settings) -> None:
    async with App(settings) as app:
        await until(lambda: app.decider is not None and app.decider.owned() == [0, 1, 2, 3])
        [before] = await present(app.bus)
        first = app.decider
        Path(settings.rule_files[0]).write_text(TWO)
        app.reload()
        await until(lambda: app.decider not in (None, first))
        await until(lambda: app.decider is not None and app.decider.owned() == [0, 1, 2, 3])
        await until(lambda: app._files is not None and len(app._files.rules.rules) == 2)
        async with asyncio.timeout(60):
            while [one.rules for one in await present(app.bus)] == [before.rules]:
                await asyncio.sleep(0.02)
        [after] = await present(app.bus)
    assert (before.name, after.name, after.problems) == ("me", "me", ())
    assert before.rules != after.rules
    assert before.since < after.since


async def test_where_nothing_starts_under_the_new_rules_the_old_ones_go_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_roles, "RoleSet", Picky)
    async with App(settings) as app:
        first = app.decider
        Path(settings.rule_files[0]).write_text(TWO)
        app.reload()
        await until(lambda: app._files is not None and bool(app._files.problems))
        await until(lambda: app.decider is not None and app.decider.owned() == [0, 1, 2, 3])
        assert app.decider is not first
        assert app._files is not None
        assert app._files.problems == ("SettingsError: these rules ask for what is not here",)
        assert [rule.name for rule in app._files.rules.rules] == ["one"]
        assert await app._not_ready() == []


async def test_where_the_old_ones_start_no_more_either_the_process_ends(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_roles, "RoleSet", Picky)
    async with App(settings) as app:
        monkeypatch.setattr(Picky, "refuses", ("one", "two"))
        Path(settings.rule_files[0]).write_text(TWO)
        app.reload()
        async with asyncio.timeout(60):
            with pytest.raises(Died, match="no rules can be carried out"):
                await app.failed()


async def test_a_second_process_of_the_same_name_does_not_start(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "DYING_SECONDS", 0.1)
    async with App(settings) as app:
        assert app.server is not None
        bus = settings.bus.model_copy(update={"url": app.server.url})
        with pytest.raises(SettingsError, match="another process on this bus is called me"):
            async with App(settings.model_copy(update={"bus": bus})):
                pass
        async with App(settings.model_copy(update={"bus": bus, "name": "other"})):
            assert [one.name for one in await present(app.bus)] == ["me", "other"]
        assert [one.name for one in await present(app.bus)] == ["me"]


async def test_readyz_names_a_role_that_does_not_do_its_work_and_says_why(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, mended = Router.run, asyncio.Event()

    async def broken(router: Router) -> None:
        if not mended.is_set():
            raise ValueError("a mistake of ours")
        await whole(router)

    monkeypatch.setattr(Router, "run", broken)
    monkeypatch.setattr(supervise, "PAUSE_MAX", 0.5)
    async with App(settings) as app, aiohttp.ClientSession() as session:

        async def asked() -> tuple[int, str]:
            async with session.get(f"{app.health_url}/readyz") as answer:
                return answer.status, await answer.text()

        async with asyncio.timeout(60):
            while (await asked())[0] == 200:
                await asyncio.sleep(0.05)
            while "router fails again and again: ValueError: a mistake of ours" not in (await asked())[1]:
                await asyncio.sleep(0.05)
            mended.set()
            while (await asked())[0] != 200:
                await asyncio.sleep(0.05)
