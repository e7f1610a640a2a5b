"""A stop that comes while rules are being changed leaves no role behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reactor.process import active_roles
from reactor.process.app import App
from reactor.settings.model import Settings

RULES = "apiVersion: reactor/v1\nrules:\n- {name: one, kind: Notification, match: 'service/**', message: 'MESSAGE'}\n"


class SlowCrew:
    """Takes a while to begin, and to hand over."""

    decider = None
    at_work = 0
    moment = asyncio.Event()
    """Set in the middle of the step that the test waits for."""
    waited_for = ""

    def __init__(self, *_: object) -> None:
        return

    async def __aenter__(self) -> SlowCrew:
        SlowCrew.at_work += 1
        await self._takes_a_while("begin")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._takes_a_while("end")
        SlowCrew.at_work -= 1

    async def _takes_a_while(self, step: str) -> None:
        if step == SlowCrew.waited_for:
            SlowCrew.moment.set()
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("step", ["end", "begin"])
async def test_a_stop_in_the_middle_of_a_reload_leaves_no_role_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(active_roles, "RoleSet", SlowCrew)
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    settings = Settings.model_validate({
        "bus": {"store": tmp_path / "nats"}, "receiver": {"listen": "127.0.0.1:0"}, "rule_files": (str(rules),),
    })  # fmt: skip
    SlowCrew.at_work, SlowCrew.moment, SlowCrew.waited_for = 0, asyncio.Event(), ""
    async with App(settings) as app:
        assert SlowCrew.at_work == 1
        SlowCrew.waited_for = step
        rules.write_text(RULES.replace("MESSAGE", "another"))
        app.reload()
        async with asyncio.timeout(60):
            await SlowCrew.moment.wait()
    assert SlowCrew.at_work == 0
