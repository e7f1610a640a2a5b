"""Calls that block: each purpose has threads of its own, none of which keeps the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from functools import partial

import pytest

from reactor.runtime.threads import CLOUD, FILES, Threads
from tests.unit.webhook.builders import counted


async def test_what_a_call_gives_or_raises_comes_back() -> None:
    threads = Threads("test", 1)
    assert await threads.run(lambda: 7) == 7
    with pytest.raises(OSError, match="no"):
        await threads.run(_raises)
    assert await threads.run(lambda: 8) == 8


def _raises() -> None:
    raise OSError("no")


async def test_calls_beyond_the_limit_wait_in_their_order_and_are_counted() -> None:
    threads, go, order = Threads("few", 1), threading.Event(), list[int]()
    held = [asyncio.create_task(threads.run(go.wait))]
    waiting = [asyncio.create_task(threads.run(partial(order.append, number))) for number in range(3)]
    while counted("reactor_threads_waiting", purpose="few") < 3:
        await asyncio.sleep(0)
    assert order == []
    go.set()
    await asyncio.gather(*held, *waiting)
    assert order == [0, 1, 2]
    assert counted("reactor_threads_waiting", purpose="few") == 0


async def test_who_gives_up_leaves_the_place_taken_until_the_call_ends() -> None:
    threads, go = Threads("one", 1), threading.Event()
    task = asyncio.create_task(threads.run(go.wait))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    next_ = asyncio.create_task(threads.run(lambda: "next"))
    while counted("reactor_threads_waiting", purpose="one") < 1:
        await asyncio.sleep(0)
    go.set()
    assert await next_ == "next"


async def test_files_are_read_while_all_calls_to_clouds_hang() -> None:
    go = threading.Event()
    hanging = [asyncio.create_task(CLOUD.run(go.wait)) for _ in range(20)]
    try:
        async with asyncio.timeout(300):
            assert await FILES.run(lambda: "read") == "read"
    finally:
        go.set()
        await asyncio.gather(*hanging)


def test_a_call_that_hangs_does_not_keep_the_process() -> None:
    hangs = """
import asyncio, threading, time
from reactor.runtime.threads import Threads
begun = threading.Event()
def hang():
    begun.set()
    time.sleep(600)
async def main():
    task = asyncio.create_task(Threads("x", 1).run(hang))
    while not begun.is_set():
        await asyncio.sleep(0)
    task.cancel()
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", hangs], check=True, timeout=300)
