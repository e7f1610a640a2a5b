"""Background work is done, a few tasks at a time, and its end is waited for."""

from __future__ import annotations

import asyncio

from reactor.actions.background import AT_ONCE, BackgroundTasks


async def test_a_process_that_leaves_waits_for_what_is_still_to_be_done() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    async with BackgroundTasks() as background:
        for number in range(3 * AT_ONCE):
            background(work(number))
        assert done == []
    assert sorted(done) == list(range(3 * AT_ONCE))


async def test_only_a_few_things_are_done_at_once() -> None:
    running = most = 0
    go_on = asyncio.Event()

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go_on.wait()
        running -= 1

    async with BackgroundTasks() as background:
        for _ in range(3 * AT_ONCE):
            background(work())
        while running < AT_ONCE:
            await asyncio.sleep(0)
        go_on.set()
    assert (most, running) == (AT_ONCE, 0)
