"""A load that may hang is waited for a while, and is never started twice at once."""

from __future__ import annotations

import asyncio

import pytest

from reactor.clients import loading
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.clients.loading import Loading
from reactor.runtime.errors import SettingsError


class Program:
    """Ends when it is told to."""

    def __init__(self) -> None:
        self.started = 0
        self.ends = asyncio.Event()
        self.loading = Loading(self._run, what="clusters.east")

    async def _run(self) -> str:
        self.started += 1
        which = self.started
        await self.ends.wait()
        if which == 1:
            raise SettingsError("not yet")
        return "credentials"


async def test_one_that_hangs_is_joined_and_one_that_has_failed_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "WAIT_SECONDS", 0)
    program = Program()
    for _ in range(3):
        with pytest.raises(ApiUnavailable, match=r"clusters\.east"):
            await program.loading()
    assert program.started == 1
    program.ends.set()
    await asyncio.sleep(0)
    with pytest.raises(SettingsError):
        await program.loading()
    monkeypatch.setattr(loading, "WAIT_SECONDS", 5)
    assert {*await asyncio.gather(program.loading(), program.loading())} == {"credentials"}
    assert program.started == 2


async def test_who_gives_up_takes_it_from_no_other() -> None:
    program = Program()
    first, second = asyncio.create_task(program.loading()), asyncio.create_task(program.loading())
    await asyncio.sleep(0)
    first.cancel()
    program.ends.set()
    with pytest.raises(SettingsError):
        await second
    assert program.started == 1


async def test_what_is_stopped_is_over() -> None:
    program = Program()
    waiting = asyncio.create_task(program.loading())
    await asyncio.sleep(0)
    await program.loading.stop()
    with pytest.raises(asyncio.CancelledError):
        await waiting
