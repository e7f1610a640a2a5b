"""A health script that harms its process harms nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bus.messages import Health
from reactor.runtime.errors import SettingsError
from reactor.sources.kubernetes import scripts
from reactor.sources.kubernetes.scripts import Script

pytest.importorskip("cel_expr_python", reason="the extra cel is not installed")
pytest.importorskip("lupa", reason="the extra lua is not installed")

MAPS = "object.spec.l.map(a, object.spec.l.map(b, object.spec.text + string(a) + string(b))).size() > 0"
"""Took 1.8 GB in the reactor's own process."""
LARGE = {"metadata": {"namespace": "shop", "name": "bomb"}, "spec": {"l": [*range(90)], "text": "x" * 300_000}}
LONG = {"metadata": {}, "spec": {"l": [*range(90)], "text": "x" * 5_000_000}}
SMALL = {"metadata": {"namespace": "shop", "name": "well"}, "spec": {"l": [1], "text": "x"}}


def resident(pid: int | str = "self") -> int:
    """The resident memory of a process in bytes, now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_script_that_takes_too_much_memory_is_ended_named_and_the_next_object_is_judged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = resident()
    async with Script("copies", "cel", MAPS) as script:
        verdict = await script.judge(LARGE)
        assert verdict.status is Health.UNKNOWN
        assert "took more than 256 MiB" in verdict.detail
        assert (await script.judge(SMALL)).status is Health.HEALTHY
    assert resident() - before < 64 << 20
    [record] = [record for record in caplog.records if "health script was ended" in record.getMessage()]
    assert (record.__dict__["source"], record.__dict__["object"]) == ("copies", "shop/bomb")


SLOW = "object.spec.l.all(a, object.spec.l.all(b, !object.spec.text.contains('xy')))"


async def test_a_script_that_takes_too_long_is_ended_while_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "ANSWER_SECONDS", 300.0)  # a second of the processor may take long on a busy machine
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async with Script("copies", "cel", SLOW) as script:
        ticking = asyncio.create_task(tick())
        verdict = await script.judge(LONG)
        ticking.cancel()
        assert (verdict.status, verdict.detail) == (Health.UNKNOWN, "health.cel: took more than 1 s of CPU time")
        assert ticks > 5
        assert (await script.judge(SMALL)).status is Health.HEALTHY


async def test_a_process_that_makes_no_progress_is_ended_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Script("copies", "cel", "object.spec.l[0] == 1") as script:
        assert script._process is not None
        script._process.send_signal(signal.SIGSTOP)
        with monkeypatch.context() as short:
            short.setattr(scripts, "ANSWER_SECONDS", 0.5)
            assert "gave no answer within" in (await script.judge(SMALL)).detail
        assert (await script.judge(SMALL)).status is Health.HEALTHY


@pytest.mark.parametrize(("language", "text", "why"), [
    ("lua", "x =", "unexpected symbol"), ("lua", "while true do end", "more than 200000 instructions"),
    ("cel", "object.", "Syntax error"), ("cel", "1 + 1", "has to give true or false"),
])  # fmt: skip
async def test_a_script_that_cannot_work_is_refused_when_its_source_starts(language: str, text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=f"source copies: health.{language}: .*{why}"):
        async with Script("copies", language, text):
            pass


async def test_a_script_sees_no_secret_of_the_environment_and_ends_with_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REACTOR_SECRET", "hush")
    async with Script("copies", "lua", "function InterpretHealth(o) return o.spec.l[1] == 1 end") as script:
        assert script._process is not None
        pid = script._process.pid
        assert b"hush" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert (await script.judge(SMALL)).status is Health.HEALTHY
    assert not Path(f"/proc/{pid}").exists()


async def test_a_judgement_that_is_cut_short_is_not_taken_for_that_of_the_next_object() -> None:
    async with Script("copies", "cel", "object.spec.l[0] == 1") as script:
        cut = asyncio.create_task(script.judge({"metadata": {}, "spec": {"l": [2]}}))
        await asyncio.sleep(0)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        assert (await script.judge(SMALL)).status is Health.HEALTHY
