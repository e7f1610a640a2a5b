"""One connection to NATS: made, watched, and asked.

nats-py's defaults suit a laptop: it notices a frozen server after six minutes and gives up after two. Here a frozen
server is noticed within six seconds and left for another, reconnecting never ends, and a connection that closed for
good says so.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nats.errors import ConnectionClosedError, Error, NoRespondersError, OutboundBufferLimitError
from nats.errors import TimeoutError as NatsTimeoutError

from bus.errors import Unavailable, WrongServer
from bus.jetstream.client import FailFastClient
from bus.jetstream.reading_watch import ReadingWatch
from bus.subjects import inbox

PING_SECONDS = 2  # with two pings outstanding, a frozen server is noticed after at most six seconds
RECONNECT_SECONDS = 0.2
NO_LEADER = 10008  # JetStream: temporarily unavailable: a cluster that starts, or is choosing a leader
ANYBODY = "anybody"
"""The user of clients without credentials, on a server that asks for none."""
INSTEAD = "to stop the reactor: reactor pause '*'"
OLDEST = (2, 12)  # the oldest nats-server that has what we use, and whose recovery we tried

KEPT_MAX = 10_000
"""There may be as many permission errors as subjects, and each acknowledgement has a subject of its own."""

DENIED = re.compile(r'permissions violation for publish to "([^"]+)"', re.IGNORECASE)
"""The server's words in the place of an answer. nats-py gives them in lower case, the subject too."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials for the server. At most one of creds_file, nkey_seed_file, and user with password."""

    creds_file: Path | None = None
    """JWT and seed, as `nsc` writes them."""
    nkey_seed_file: Path | None = None
    user: str | None = None
    password: str | None = None
    tls: Callable[[], ssl.SSLContext] | None = None
    """Asked before each handshake: certificates are renewed while we run."""
    password_file: Path | None = None
    """Read before each login."""
    inbox_prefix: str | None = None
    """Prefix of the inboxes that answers come to; permissions are for this one. Default: that of the URL's user."""

    def options(self) -> dict[str, Any]:
        """Give nats-py's own names. Raises ValueError where a library for nkeys is missing."""
        if (self.creds_file or self.nkey_seed_file) and importlib.util.find_spec("nkeys") is None:
            raise ValueError("credentials by nkey or creds file need one more library: pip install 'nats-py[nkeys]'")
        given = {
            "user_credentials": self.creds_file and str(self.creds_file),
            "nkeys_seed": self.nkey_seed_file and str(self.nkey_seed_file),
            "user": self.user, "password": self.password, "tls": self.tls and self.tls(),
            "inbox_prefix": self.inbox_prefix,
        }  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}

    def renewed(self) -> dict[str, Any]:
        """Options that may have changed since the last login; what cannot be read stays as it was."""
        found: dict[str, Any] = {"tls": self.tls()} if self.tls is not None else {}
        if self.password_file is not None:
            try:
                found["password"] = self.password_file.read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                log.warning("bus=password error=%s", error)
        return found


class ApiError(Unavailable):
    """The server's JetStream API answered with an error. Catch it where you expect a certain `code`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} (JetStream error {code})")
        self.code = code


class Connection:
    """Connection that all parts of the adapter share."""

    def __init__(self, client: FailFastClient, *, timeout: timedelta) -> None:
        self.client = client
        self.timeout = timeout.total_seconds()
        """Seconds that one request may take."""
        self.user = ANYBODY
        """Our user for the server: the token behind `_INBOX_` of our inboxes."""
        self.read_only = False
        """Make no consumers, and write nothing but what is published: for users who may only look."""
        self.up = asyncio.Event()
        self.closed = asyncio.Event()
        """Set once the connection has ended for good: the process should end too, and be started again."""
        self.found_at = 0.0
        """Time of the event loop at which the connection was last found again; 0: it was never lost."""
        self.losses = 0
        """Number of times that the connection was lost: what was asked of the server before may be forgotten."""
        self.errors: dict[str, str] = {}
        """Errors since the last success, each once: its repr and its text. At most KEPT_MAX."""
        self.denied: set[str] = set()
        """Subjects, in lower case, on which the server has lately not let us publish. At most KEPT_MAX."""
        self.unstored: dict[str, float] = {}
        """Time at which the server last answered without storing, by the first two tokens of subjects. From this
        connection on: one that was lost says nothing of a disk."""
        self.stalled: dict[str, str] = {}
        """Readings that got nothing although more was stored, until a look finds them right: stream and subject, and
        what to tell people."""
        self.on_foreign: Callable[[str, str], None] = _ignored
        """Called with a stream and a subject for each message that another client pushed into a reading of ours."""
        self.on_unserved: Callable[[], None] = lambda: None
        """Called for each request for work that the server answered by: there is no such queue, or none to serve it."""
        self.readings = ReadingWatch(self.api)
        self._wakers: set[Callable[[], None]] = set()

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever the connection comes or goes, until the function that is given back is called."""
        self._wakers.add(wake)
        return lambda: self._wakers.discard(wake)

    async def api(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ask `$JS.API.<name>`. Raises Unavailable, and ApiError where the server answered that it cannot."""
        try:
            async with asyncio.timeout(self.timeout):
                await self.up.wait()
            async with self._while_connected():
                message = await self.client.request(
                    f"$JS.API.{name}", json.dumps(request).encode(), timeout=self.timeout
                )
        except NoRespondersError as error:
            raise Unavailable("JetStream does not answer: is it enabled, has its cluster a leader?") from error
        except (NatsTimeoutError, TimeoutError) as error:
            raise Unavailable(f"no answer to {name.split('.')[0]} within {self.timeout:g} s") from error
        except (ConnectionClosedError, OutboundBufferLimitError, Error) as error:
            raise Unavailable(f"not connected: {error}") from error
        answer: dict[str, Any] = json.loads(message.data)
        if error_ := answer.get("error"):
            raise ApiError(error_.get("err_code", 0), error_.get("description", "no description"))
        return answer

    @asynccontextmanager
    async def _while_connected(self) -> AsyncIterator[None]:
        """Raise TimeoutError once the connection is lost: an answer to what was asked before does not come."""
        losses = self.losses
        async with asyncio.timeout(None) as limit:

            def wake() -> None:
                if self.losses != losses:
                    limit.reschedule(asyncio.get_running_loop().time())

            unwatch = self.watch(wake)
            try:
                yield
            finally:
                unwatch()

    async def on_lost(self) -> None:
        if self.up.is_set() and not self.client.leaving:
            self.losses += 1
            log.warning("bus=disconnected")
        self.up.clear()
        self._wake()

    async def on_found(self) -> None:
        log.info("bus=connected")
        self.errors.clear()
        self.denied.clear()
        self.unstored.clear()  # a server that was frozen, or another one, may store
        self.found_at = asyncio.get_running_loop().time()
        self.up.set()
        self._wake()

    async def on_ended(self) -> None:
        self.up.clear()
        self.closed.set()
        self._wake()

    async def on_error(self, error: Exception) -> None:
        # Once until the next success: a server that is away fails five times a second.
        if repr(error) not in self.errors:
            if len(self.errors) >= KEPT_MAX:
                self.errors.clear()  # what goes on is told once again
            log.warning("bus=error error=%r", error)
            self.errors[repr(error)] = str(error)
        if denied := DENIED.search(str(error)):
            if len(self.denied) >= KEPT_MAX:
                self.denied.clear()  # a task that still waits for one of these tries again, and is denied again
            self.denied.add(denied[1])
            self._wake()

    def _wake(self) -> None:
        for wake in tuple(self._wakers):
            wake()


def _ignored(stream: str, subject: str) -> None:
    log.warning("stream=%s a message on %s did not come from JetStream, and is ignored", stream, subject)


@asynccontextmanager
async def connect(
    url: str | Sequence[str], *, name: str, credentials: Credentials, timeout: timedelta, patience: timedelta
) -> AsyncIterator[Connection]:
    """Connect, check the server, and close at the end. Raises Unavailable after `patience`, WrongServer."""
    connection = Connection(FailFastClient(credentials.renewed), timeout=timeout)
    servers = [url] if isinstance(url, str) else list(url)
    prefix = credentials.inbox_prefix or _inbox(servers).get("inbox_prefix", "")
    connection.user = prefix.removeprefix("_INBOX").lstrip("_") or ANYBODY
    try:
        await _dial(connection, servers, name, credentials, timeout, patience)
        await _check(connection, patience)
        yield connection
    finally:
        await connection.client.leave()


async def _dial(
    connection: Connection, servers: list[str], name: str, credentials: Credentials, timeout: timedelta,
    patience: timedelta,
) -> None:  # fmt: skip
    try:
        async with asyncio.timeout(patience.total_seconds()):
            await connection.client.connect(
                servers, name=name, ping_interval=PING_SECONDS, max_outstanding_pings=2, max_reconnect_attempts=-1,
                reconnect_time_wait=RECONNECT_SECONDS,  # type: ignore[arg-type]  # it only ever sleeps for it
                flush_timeout=timeout.total_seconds(),  # for room in its buffer; as it comes, without end
                error_cb=connection.on_error, disconnected_cb=connection.on_lost,
                reconnected_cb=connection.on_found, closed_cb=connection.on_ended,
                **_inbox(servers) | credentials.options(),
            )  # fmt: skip
    except TimeoutError as error:
        where = ", ".join(address.rpartition("@")[2] for address in servers)  # never a password
        why = "; ".join(connection.errors.values()) or "no answer"
        raise Unavailable(f"no NATS server at {where} within {patience.total_seconds():g} s: {why}") from error
    connection.up.set()


def _inbox(servers: Sequence[str]) -> dict[str, str]:
    user = urlsplit(servers[0]).username if servers else None
    return {"inbox_prefix": inbox(user)} if user else {}


async def _check(connection: Connection, patience: timedelta) -> None:
    """Refuse a server that would fail later, in the middle of something; wait for one that is not ready yet."""
    version = connection.client.connected_server_version
    if (version.major, version.minor) < OLDEST:
        raise WrongServer(f"nats-server {version.major}.{version.minor}.{version.patch} is too old: 2.12 is needed")
    give_up = asyncio.get_running_loop().time() + patience.total_seconds()
    while True:
        try:
            await connection.api("INFO", {})
        except ApiError as error:
            if error.code != NO_LEADER:
                raise WrongServer(f"this NATS account has no JetStream: {error}") from error
            if asyncio.get_running_loop().time() >= give_up:
                raise
            await asyncio.sleep(RECONNECT_SECONDS)
        except Unavailable as error:
            if isinstance(error.__cause__, NoRespondersError):
                raise WrongServer(
                    "this nats-server runs without JetStream: start it with -js; after a full disk, restart it"
                ) from error
            if asyncio.get_running_loop().time() >= give_up:
                raise
        else:
            return
