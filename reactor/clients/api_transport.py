"""Calls of one Kubernetes API: sent with credentials that are renewed, answered within a time, errors told apart.

The official client is the transport: it adds the credentials, and renews tokens before they run out. What the verbs
mean, and in which pages a LIST is read, is in `kubernetes.py`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any
from weakref import WeakSet

import aiohttp

from bus.json_text import parsed
from reactor.clients.api_refusals import RefusedRequest, refusal
from reactor.clients.credential_loading import rest_seconds
from reactor.clients.hanging import ANSWER_SECONDS, ANSWERS_MAX, WAIT_SECONDS, SlowLists, unless_hung
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, JsonObject
from reactor.clients.loading import Loading
from reactor.clients.official_client import ApiException, ConfigException
from reactor.clients.sessions import Purpose, Sessions
from reactor.clients.watching import Silent
from reactor.runtime import telemetry
from reactor.runtime.errors import SettingsError

REQUEST_SECONDS = 10.0
CONNECT_SECONDS = 3.0  # a server that is there takes a connection within a round trip
_REFUSAL_BYTES = 64 << 10

log = logging.getLogger(__name__)


class ApiTransport:
    """The calls of one cluster's API, with one set of credentials after the other."""

    def __init__(self, cluster: str, load: Callable[[], Awaitable[Sessions]], sessions: Sessions) -> None:
        """`load` reads the credentials again."""
        self.cluster = cluster
        self._sessions = sessions
        self._retired = WeakSet[Sessions]()  # kept by the calls under way on them; `close` ends those too
        self._reloading = asyncio.Lock()
        self._loading = Loading(load, what=f"clusters.{cluster}")
        self._slow_lists = SlowLists()
        self._rests_until = -inf  # credentials are not read again before, on the event loop's clock

    async def json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """Give the object that it is answered. Raises ApiUnavailable where that is none."""
        request, text = await self.text(method, path, query=query, body=body, content_type=content_type)
        try:
            found = parsed(text)
        except ValueError as error:
            raise ApiUnavailable(f"{request.text} was answered no JSON: {error}") from error
        if not isinstance(found, dict):
            raise ApiUnavailable(f"{request.text} was answered JSON that is no object")
        return found

    async def text(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        seconds: float = REQUEST_SECONDS,
        purpose: Purpose = Purpose.ACT,
    ) -> tuple[RefusedRequest, bytes]:
        """Give the request, for messages, and the whole body of its answer."""
        request = RefusedRequest(self.cluster, method, path, query or {}, content_type)
        timeout = timeout_of(seconds, silent=WAIT_SECONDS if purpose is Purpose.WATCH else None)
        async with self._answer(request, body, timeout, purpose) as response:
            return request, await _whole(request, response)

    @asynccontextmanager
    async def watch(
        self, path: str, query: Mapping[str, str], idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch, on a connection of its own, and give its lines. Raises Silent where none comes."""
        request = RefusedRequest(self.cluster, "GET", path, query)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        async with self._answer(request, None, timeout, Purpose.WATCH) as response:
            with telemetry.open_watches.labels(self.cluster).track_inprogress():
                yield _lines(request, response)

    async def stop_loading(self) -> None:
        """Read no credentials any more."""
        await self._loading.stop()

    async def close(self) -> None:
        """Close all connections."""
        for sessions in (self._sessions, *self._retired):
            await sessions.close()

    @asynccontextmanager
    async def _answer(
        self, request: RefusedRequest, body: object, timeout: aiohttp.ClientTimeout, purpose: Purpose
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send it and give a 2xx answer whose body is still to be read; raise for any other."""
        async with self.any_answer(request, body, timeout, purpose) as response:
            if response.status // 100 != 2:
                raise refusal(request, response.status, await _start(request, response), response.headers)
            yield response

    @asynccontextmanager
    async def any_answer(
        self, request: RefusedRequest, body: object, timeout: aiohttp.ClientTimeout, purpose: Purpose
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send it and give the answer.

        A 401, and a certificate that one of the two does not take, have the credentials read again, once: tokens of
        exec plugins and certificates run out, and CAs are replaced while we run.
        """
        for last_try in (False, True):
            sessions = self._sessions
            async with sessions.lent(purpose) as client:
                try:
                    response = await self._sent(client, request, body, timeout, purpose)
                except ApiUnavailable as error:
                    if _is_about_certificates(error.__cause__) and not last_try and await self._reload(sessions):
                        continue
                    raise
                try:
                    if response.status == 401 and not last_try and await self._reload(sessions):
                        continue
                    yield response
                finally:
                    response.close()  # given back for reuse if it was read to its end, cut if not
                return

    async def _sent(
        self, client: Any, request: RefusedRequest, body: object, timeout: aiohttp.ClientTimeout, purpose: Purpose
    ) -> aiohttp.ClientResponse:
        sent = _sent(client, request, body, timeout)
        if purpose is Purpose.PROBE or request.method != "GET":  # a write that is given up may be carried out
            return await sent

        async def ask() -> None:
            one = RefusedRequest(self.cluster, "GET", request.path, {"limit": "1"})
            (await _sent(client, one, None, timeout_of(ANSWER_SECONDS))).close()

        if "limit" not in request.query:
            return await unless_hung(sent, ask, _close, what=request.text, answers_max=ANSWERS_MAX)
        if "continue" in request.query:
            return await unless_hung(sent, ask, _close, what=request.text)
        which = f"{request.path}?{request.query}"
        return await self._slow_lists.first_page(which, sent, ask, _close, what=request.text)

    async def _reload(self, refused: Sessions) -> bool:
        """Read the configuration again after a 401. Gives whether there is now another client to try with."""
        async with self._reloading:
            if self._sessions is not refused:
                return True
            now = asyncio.get_running_loop().time
            if (began := now()) < self._rests_until:
                return False
            log.info("credentials or a certificate were refused, reading them again", extra={"cluster": self.cluster})
            try:
                renewed = await self._loading()
            except SettingsError as error:
                raise Forbidden(str(error)) from error
            finally:
                # From its end: those who wait here meanwhile do not each have to find out that it hangs.
                self._rests_until = now() + rest_seconds(now() - began)
            self._sessions = renewed
            self._retired.add(refused)
            await refused.retire()
            return True


def _close(late: aiohttp.ClientResponse) -> None:
    late.close()


def timeout_of(seconds: float, *, silent: float | None = None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS, sock_read=silent)


async def _sent(
    client: Any, request: RefusedRequest, body: object, timeout: aiohttp.ClientTimeout
) -> aiohttp.ClientResponse:
    headers = {"Accept": "application/json"}
    if request.content_type:
        headers["Content-Type"] = request.content_type
    try:
        arguments = await client.param_serialize(
            request.method, request.path, query_params=[*request.query.items()], header_params=headers,
            body=body, auth_settings=["BearerToken"],
        )  # fmt: skip
        answer = await client.call_api(*arguments, _request_timeout=timeout)
    except ConfigException as error:
        raise Forbidden(f"{request.text}: the credentials cannot be read: {error}") from error
    except (aiohttp.ClientError, ApiException, TimeoutError, OSError) as error:
        raise _unreachable(request, error) from error
    except ValueError as error:  # after ClientError: an odd URL is both
        raise Forbidden(f"{request.text} cannot be sent: {error} Is there a line break inside of the token?") from error
    response: aiohttp.ClientResponse = answer.response
    return response


def _unreachable(request: RefusedRequest, error: BaseException) -> ApiUnavailable:
    words = str(error) or type(error).__name__
    return ApiUnavailable(f"{request.text} got no answer: {words}")


def _is_about_certificates(error: BaseException | None) -> bool:
    """True if a handshake failed, or the server closed the connection for our certificate: TLS 1.3 says so later."""
    while error is not None:
        if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError):
            return True
        error = error.__cause__ or (error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None)
    return False


async def _whole(request: RefusedRequest, response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _unreachable(request, error) from error


async def _start(request: RefusedRequest, response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.content.read(_REFUSAL_BYTES)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _unreachable(request, error) from error


async def _lines(request: RefusedRequest, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    while True:
        try:
            line = await response.content.readline()
        except TimeoutError as error:
            raise Silent(f"{request.text}: the open watch says nothing") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # ValueError: a line longer than the read buffer, twice the largest object that etcd takes.
            raise _unreachable(request, error) from error
        if not line:
            return
        yield line
