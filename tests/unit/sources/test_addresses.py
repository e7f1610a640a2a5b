"""Addresses to which no probe may connect."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from reactor.sources.probes.addresses import AddressRefused, check, open_socket, resolve
from reactor.sources.probes.lookups import OF_A_NAME_MAX


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255",
        "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::", "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
    ],
)  # fmt: skip
def test_metadata_and_link_local_addresses_are_refused_in_every_form(address: str) -> None:
    with pytest.raises(AddressRefused, match="no probe connects there"):
        check(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.0.0.7", "192.168.1.1", "100.100.100.201", "8.8.8.8", "2001:db8::1", "fd00::1"]
)
def test_other_addresses_are_fine_loopback_among_them(address: str) -> None:
    assert check(address) == address


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"])
async def test_the_address_counts_and_not_how_it_is_written(host: str) -> None:
    with pytest.raises(AddressRefused):
        await resolve(host, 80)


async def test_a_name_that_is_none_cannot_be_resolved() -> None:
    with pytest.raises(OSError, match="is no host name"):
        await resolve("a" * 70 + ".example", 80)


async def test_many_dead_names_do_not_hold_up_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Semaphore(0)
    loop, let_go = asyncio.get_running_loop(), threading.Event()

    def hanging(*_: object) -> list[object]:
        loop.call_soon_threadsafe(started.release)
        let_go.wait(5)
        raise OSError("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    lookups = [asyncio.create_task(resolve(f"dead{number}", 80)) for number in range(40)]
    for _ in lookups:
        async with asyncio.timeout(60):
            await started.acquire()
    let_go.set()
    answers = await asyncio.gather(*lookups, return_exceptions=True)
    assert all(isinstance(answer, OSError) for answer in answers)


async def test_a_dead_name_that_is_looked_up_again_and_again_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try of its probe looks it up, gives up in time, and leaves a thread behind."""
    let_go, dead = threading.Event(), list[str]()
    true = socket.getaddrinfo

    def looks_up(host: str, *more: Any) -> Any:
        if host == "dead":
            dead.append(host)
            let_go.wait(30)
            raise OSError("no answer")
        return true("127.0.0.1", *more)

    monkeypatch.setattr(socket, "getaddrinfo", looks_up)
    try:
        tries = [asyncio.create_task(resolve("dead", 80)) for _ in range(300)]
        await asyncio.sleep(0)
        for one in tries:
            one.cancel()
        async with asyncio.timeout(20):
            assert (await resolve("alive", 80))[0][4][0] == "127.0.0.1"
            while len(dead) < OF_A_NAME_MAX:  # their threads may begin after that
                await asyncio.sleep(0)
        assert len(dead) == OF_A_NAME_MAX
    finally:
        let_go.set()
    assert await asyncio.gather(*(resolve("alive", 80) for _ in range(300)))
    await asyncio.gather(*tries, return_exceptions=True)


def test_the_last_check_is_made_on_the_address_that_is_connected_to() -> None:
    with pytest.raises(AddressRefused):
        open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("169.254.169.254", 80)))
