"""Connects to the bus as the settings say: the one place that knows what a connection needs and agrees on."""

from __future__ import annotations

import asyncio
import binascii
import json
import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path

from bus import subjects
from bus.errors import NotReady, Refused, Unavailable
from bus.jetstream import Credentials, JetStreamBus, provision
from bus.port import Bus
from bus.topology import LEASES
from reactor.fleet.layout import LAYOUT, partitions_of
from reactor.runtime.certificates import Certificates
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.bus_settings import BusSettings

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=10)
CLOCKS_APART = timedelta(seconds=1)
"""More than NTP ever leaves between two machines; less than any window that is worth a second."""
JWT = b"BEGIN NATS USER JWT"
START_SECONDS = 60.0
START_AGAIN_SECONDS = 0.5
LOOKS = 3
"""Questions to the bus about its time: the quickest answer is the most exact one."""


def address(settings: BusSettings, given: str | None = None) -> str | Sequence[str]:
    """Give where the bus is: as given, by the settings, or where a local reactor has embedded one.

    Raises SettingsError where none of these says.
    """
    if url := given or settings.url:
        return url
    file = settings.store / "url"
    if not file.is_file():
        raise SettingsError(f"no reactor runs here with an embedded bus ({file} is not there): name one with --bus URL")
    return file.read_text("utf-8").strip()


def connected(
    settings: BusSettings,
    url: str | Sequence[str],
    name: str,
    *,
    patience: timedelta = PATIENCE,
    read_only: bool = True,
) -> AbstractAsyncContextManager[JetStreamBus]:
    """Connect with the credentials of the settings. Raises SettingsError, Unavailable, WrongServer.

    `read_only`: for a user who may make no consumers.
    """
    try:
        return JetStreamBus.connect(
            url, name=name, credentials=_credentials(settings), patience=patience, read_only=read_only
        )
    except (OSError, ValueError) as error:
        raise SettingsError(f"bus: {error}") from error


def _credentials(settings: BusSettings) -> Credentials:
    """Raises OSError where a file is missing, ValueError where it is not what it should be."""
    for file in (
        settings.credentials, settings.nkey_seed_file, settings.ca_file, settings.cert_file, settings.key_file
    ):  # fmt: skip
        if file is not None:
            file.read_bytes()  # nats-py would fail in the middle of connecting, ssl without the file's name
    if settings.nkey_seed_file is not None:
        _check_seed(settings.nkey_seed_file)
    if settings.credentials is not None and JWT not in settings.credentials.read_bytes():
        raise ValueError(f"credentials: {settings.credentials} is no .creds file: it has no line {JWT.decode()}")
    password = settings.password.get_secret_value() if settings.password else None
    if settings.password_file is not None:
        password = settings.password_file.read_text("utf-8").strip()
    return Credentials(
        creds_file=settings.credentials, nkey_seed_file=settings.nkey_seed_file,
        user=settings.user, password=password, password_file=settings.password_file, tls=_tls(settings),
        inbox_prefix=settings.inbox_prefix or (subjects.inbox(settings.user) if settings.user else None),
    )  # fmt: skip


def _check_seed(file: Path) -> None:
    """Raises ValueError where it holds none; nats-py would fail in the middle of connecting, without its name."""
    import nkeys  # 1 MB: only for who has one

    try:
        nkeys.from_seed(bytearray(file.read_bytes().strip()))
    except (nkeys.NkeysError, binascii.Error, ValueError, IndexError) as error:
        raise ValueError(f"nkeySeedFile: {file} holds no seed of an nkey (SU…)") from error


def _tls(settings: BusSettings) -> Callable[[], ssl.SSLContext] | None:
    """Factory of the TLS context of the settings; None: TLS as the URL and the server say, with the system's CAs."""
    if settings.ca_file is None and settings.cert_file is None:
        return None
    files = (settings.ca_file, settings.cert_file, settings.key_file)
    return Certificates(partial(_context, settings), files).context


def _context(settings: BusSettings) -> ssl.SSLContext:
    """Raises OSError."""
    context = ssl.create_default_context(cafile=_text(settings.ca_file))
    if settings.cert_file is not None:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


def _text(path: Path | None) -> str | None:
    return str(path) if path is not None else None


async def agree_on_partitions(bus: JetStreamBus, partitions: int) -> None:
    """Make sure that all processes on this bus spread facts over as many partitions. Raises SettingsError."""
    there = await partitions_of(bus)
    if there is None:
        try:
            await bus.store(LEASES).put(LAYOUT, json.dumps({"partitions": partitions}).encode(), revision=0)
        except Refused:
            await agree_on_partitions(bus, partitions)  # another process was faster: compare with its number
        return
    if there != partitions:
        raise SettingsError(
            f"bus.partitions: {partitions}, but this bus was set up with {there}: use {there}, or another bus; "
            "to change it, stop all reactors, delete the reactor's streams and buckets "
            "but REACTOR_DECISIONS, and run reactor bus init "
            "(routes tell what was done, open windows start again)"
        )


async def ready(bus: JetStreamBus, settings: BusSettings, clock: Clock) -> None:
    """Make what the reactor keeps on the bus, agree on its layout, and compare clocks; wait for a bus that starts.

    A cluster of three that was just started has no leader for some seconds, and does not know all its servers. Raises
    WrongServer, SettingsError at once where waiting cannot help; what may help is raised after START_SECONDS.
    """
    loop = asyncio.get_running_loop()
    give_up = loop.time() + START_SECONDS
    told = ""
    while True:
        try:
            await provision(bus, replicas=settings.replicas)
            await agree_on_partitions(bus, settings.partitions)
            return await keep_time_with(bus, clock)
        except (Unavailable, NotReady) as error:
            why = await bus.ailment() or str(error)
            if loop.time() >= give_up:
                raise type(error)(f"not ready within {START_SECONDS:g} s: {why}") from error
            if why != told:
                log.warning("waiting for the bus to become ready: %s", why)
            told = why
            await asyncio.sleep(START_AGAIN_SECONDS)


async def clock_difference(bus: Bus, clock: Clock) -> tuple[timedelta, timedelta]:
    """Give how far the bus's clock is ahead of ours, and how wrong that may be. Raises Unavailable."""
    began = clock.now()
    stored_at = await bus.probe()
    half = (clock.now() - began) / 2
    ahead = stored_at - began - half
    clock.measured(ahead, half)
    return ahead, half


async def keep_time_with(bus: Bus, clock: Clock) -> None:
    """Use the bus's clock where ours differs by more than the answer's own time explains.

    Stored deadlines are moments, and what one process has dated is decided on by another: a process an hour ahead would
    take every open window for over, and one 0.9 s behind would have others act 0.9 s early. Raises Unavailable.
    """
    looks = [await clock_difference(bus, clock) for _ in range(LOOKS)]
    ahead, doubt = min(looks, key=lambda look: look[1])
    if abs(ahead) <= doubt:
        return
    clock.align(ahead)
    clock.measured(timedelta(0), doubt)
    if abs(ahead) - doubt > CLOCKS_APART:
        log.error(
            "this machine's clock is wrong, or the bus's: the bus's is used",
            extra={"ahead_seconds": round(-ahead.total_seconds(), 1), "fix": "NTP on both"},
        )
