"""Refused credentials are read again as soon as that costs little."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from reactor.clients.credential_loading import in_thread, rest_seconds


@pytest.mark.parametrize(("took", "rest"), [(0.0, 1.0), (0.02, 1.0), (0.3, 3.0), (1.0, 10.0), (30.0, 10.0)])
def test_a_reading_is_followed_by_a_rest_of_ten_times_as_long_of_one_to_ten_seconds(took: float, rest: float) -> None:
    assert rest_seconds(took) == pytest.approx(rest)


async def test_what_is_loaded_and_what_is_raised_comes_from_another_thread() -> None:
    async def load() -> str:
        return threading.current_thread().name

    async def fail() -> str:
        raise ValueError("no token")

    assert await in_thread(load, what="east")() == "credentials-east"
    with pytest.raises(ValueError, match="no token"):
        await in_thread(fail, what="east")()


WITHOUT_DESCRIPTORS = """
import asyncio, os, resource
from reactor.clients.credential_loading import in_thread

async def load():
    return 1

async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    taken = []
    while len(taken) < 64:
        try:
            taken.append(os.dup(0))
        except OSError:
            break
    for descriptor in taken[:{left}]:
        os.close(descriptor)
    try:
        await in_thread(load, what="east")()
    except OSError as error:
        print(error.strerror)

asyncio.run(main())
"""


@pytest.mark.parametrize("left", [0, 1, 2])
def test_where_no_descriptors_are_left_it_fails_without_a_traceback_on_stderr(left: int) -> None:
    script = WITHOUT_DESCRIPTORS.replace("{left}", str(left))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("Too many open files\n", "")
