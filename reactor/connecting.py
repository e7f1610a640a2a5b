"""From the settings to the bus: the one place that knows what a connection needs."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from bus import subjects
from bus.errors import NotFound, Refused
from bus.jetstream import Credentials, JetStreamBus
from bus.port import Bus
from bus.topology import LEASES
from reactor.errors import SettingsError
from reactor.settings import BusSettings

PATIENCE = timedelta(seconds=10)
_LAYOUT = subjects.key("layout")


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
    settings: BusSettings, url: str | Sequence[str], name: str, *, patience: timedelta = PATIENCE
) -> AbstractAsyncContextManager[JetStreamBus]:
    """Connect with the credentials of the settings. Raises SettingsError, Unavailable, WrongServer."""
    try:
        return JetStreamBus.connect(url, name=name, credentials=_credentials(settings), patience=patience)
    except (OSError, ValueError) as error:
        raise SettingsError(f"bus: {error}") from error


def _credentials(settings: BusSettings) -> Credentials:
    password = settings.password.get_secret_value() if settings.password else None
    if settings.password_file is not None:
        password = settings.password_file.read_text("utf-8").strip()
    return Credentials(
        creds_file=settings.credentials, user=settings.user, password=password,
        tls=ssl.create_default_context(cafile=str(settings.ca_file)) if settings.ca_file else None,
    )  # fmt: skip


async def agree_on_partitions(bus: Bus, partitions: int) -> None:
    """Make sure that everybody on this bus spreads facts over as many partitions. Raises SettingsError."""
    store = bus.store(LEASES)
    body = json.dumps({"partitions": partitions}).encode()
    try:
        entry = await store.get(_LAYOUT)
    except NotFound:
        try:
            await store.put(_LAYOUT, body, revision=0)
        except Refused:
            await agree_on_partitions(bus, partitions)  # somebody was faster: compare with theirs
        return
    there = json.loads(entry.value)["partitions"]
    if there != partitions:
        raise SettingsError(
            f"bus.partitions: {partitions}, but this bus was set up with {there}: use {there}, or another bus"
        )
