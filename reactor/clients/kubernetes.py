"""Kubernetes APIs. Import it lazily: with the official client it costs 0.3 s and 20 MiB.

Three parts of `kubernetes` 37 are used: its configuration (kubeconfig, exec plugins, in-cluster tokens), and its
ApiClient as an authenticated transport for raw JSON. Its typed models cost eight times the CPU over 50 clusters, and
its asynchronous Watch neither survives a 410, a cut nor an empty answer; `reflector.py` does.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from math import inf
from typing import Any
from weakref import WeakSet

import aiohttp
import yaml

from bus.json_text import parsed
from reactor.clients.api_refusals import APPLY_PATCH, JSON_PATCH, RefusedRequest, refusal
from reactor.clients.credential_loading import in_thread, rest_seconds
from reactor.clients.hanging import ANSWER_SECONDS, ANSWERS_MAX, WAIT_SECONDS, unless_hung
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, JsonObject
from reactor.clients.list_page import ListPage
from reactor.clients.loading import Loading
from reactor.clients.official_client import ApiClient, ApiException, ConfigException, Configuration, kube_config
from reactor.clients.sessions import Purpose, Sessions
from reactor.clients.shared_watch import SharedWatches
from reactor.clients.watching import Silent
from reactor.runtime import telemetry
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import ClusterSettings

FIELD_MANAGER = "alert-reactor"
REQUEST_SECONDS = 10.0
PAGE_SECONDS = 60.0  # a page of 500 large objects over a slow line
CONNECT_SECONDS = 3.0  # a server that is there takes a connection within a round trip
PAGE_OBJECTS = 500  # client-go's page size
MAX_PAGES = 2000  # a million objects: more is a server that never stops saying "continue"
_REFUSAL_BYTES = 64 << 10
_ODD_FILE = (
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    RecursionError,
)  # what the client raises at YAML that is no kubeconfig

log = logging.getLogger(__name__)


async def connect(name: str, settings: ClusterSettings) -> Kubernetes:
    """Give the cluster's API, configured but not yet called. Raises SettingsError with what to do."""
    load = in_thread(partial(_sessions, name, settings), what=name)
    return Kubernetes(name, load, await load())


async def _sessions(name: str, settings: ClusterSettings) -> Sessions:
    configuration = Configuration()
    try:
        if settings.kubeconfig is None and settings.context is None:
            kube_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the library has none
        else:
            path = str(settings.kubeconfig.expanduser()) if settings.kubeconfig else None
            await kube_config.load_kube_config(  # type: ignore[no-untyped-call]  # the library has no types there
                config_file=path, context=settings.context, client_configuration=configuration, persist_config=False
            )
        # As kubectl does: `kubectl create token … > token` ends with a line break, which no header may hold.
        configuration.api_key = {name: token.strip() for name, token in configuration.api_key.items()}
        # What the environment names as a proxy counts for none of our clients. To look it up, and a password in .netrc,
        # takes each request through two threads: more than half of its processor time.
        configuration.client_session_kwargs = {"trust_env": False}
        # Made here, because it reads the CA and the client certificate: a missing file is a setting to mend.
        return Sessions({purpose: _client(configuration, purpose) for purpose in Purpose})
    except (ConfigException, OSError, yaml.YAMLError, *_ODD_FILE) as error:
        where = f"kubeconfig {settings.kubeconfig}" if settings.kubeconfig else "the in-cluster service account"
        raise SettingsError(
            f"clusters.{name}: cannot use {where}: {' '.join(str(error).split())}. Set clusters.{name}.kubeconfig and, "
            f"where the file has several, clusters.{name}.context"
        ) from error


def _client(configuration: Any, purpose: Purpose) -> Any:
    if purpose is Purpose.WATCH:
        configuration = copy(configuration)  # only this: what renews its token is shared
        configuration.connection_pool_maxsize = 0  # aiohttp: no limit
    return ApiClient(configuration)


class Kubernetes:
    """One cluster; implements `port.KubeApi` and `watching.WatchApi`."""

    def __init__(self, name: str, load: Callable[[], Awaitable[Sessions]], sessions: Sessions) -> None:
        """`load` reads the credentials again."""
        self._name = name
        self._sessions = sessions
        self._retired = WeakSet[Sessions]()  # kept by the calls under way on them; `close` ends those too
        self._reloading = asyncio.Lock()
        self._loading = Loading(load, what=f"clusters.{name}")
        self._rests_until = -inf  # credentials are not read again before, on the event loop's clock
        self._watches = SharedWatches(name, self._opened)

    @property
    def cluster(self) -> str:
        return self._name

    async def get(self, path: str) -> JsonObject:
        return await self._json("GET", path)

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        items: list[JsonObject] = []
        selected = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {"limit": str(PAGE_OBJECTS)} | {name: value for name, value in selected.items() if value}
        for _ in range(MAX_PAGES):
            page = await self._page(path, query, Purpose.ACT)
            items += _items(path, page)
            if not page.token:
                return items
            query["continue"] = page.token
        raise ApiUnavailable(f"{self._name}: GET {path} gave more than {MAX_PAGES} pages")

    async def page(self, path: str, query: Mapping[str, str]) -> ListPage:
        return await self._page(path, query, Purpose.WATCH)

    async def _page(self, path: str, query: Mapping[str, str], purpose: Purpose) -> ListPage:
        request, text = await self._text("GET", path, query=query, seconds=PAGE_SECONDS, purpose=purpose)
        try:
            return ListPage(text)
        except ValueError as error:
            raise ApiUnavailable(f"{request.text} was answered no JSON: {error}") from error

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        # A list, always: the client turns anything else into a strategic merge patch, which custom resources refuse.
        return await self._json(
            "PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=[*operations], content_type=JSON_PATCH
        )

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        return await self._json("POST", path, query={"fieldManager": FIELD_MANAGER}, body=dict(body))

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        meant = {"uid": uid, "resourceVersion": resource_version}
        # Said, because a Job's own default leaves its pods behind.
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if preconditions := {field: value for field, value in meant.items() if value}:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._json("DELETE", path, body=options)

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        return await self._json("PATCH", path, query=query, body=dict(body), content_type=APPLY_PATCH)

    async def status(self, path: str, *, seconds: float) -> int:
        request = RefusedRequest(self._name, "GET", path, {})
        async with self._any_answer(request, None, _timeout(seconds), Purpose.PROBE) as response:
            return response.status

    async def date(self) -> datetime | None:
        """Give what time it is there, cut to the second; None: its answers do not say. Raises ApiUnavailable."""
        request = RefusedRequest(self._name, "GET", "/version", {})
        async with self._any_answer(request, None, _timeout(REQUEST_SECONDS), Purpose.ACT) as response:
            text = response.headers.get("Date")
        try:
            return parsedate_to_datetime(text) if text else None
        except ValueError as error:
            raise ApiUnavailable(f"{request.text} was answered with Date {text!r}") from error

    def stream(
        self, path: str, query: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._watches.stream(path, query, idle_seconds=idle_seconds)

    @asynccontextmanager
    async def _opened(
        self, path: str, query: Mapping[str, str], idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch, on a connection of its own."""
        request = RefusedRequest(self._name, "GET", path, query)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        async with self._answer(request, None, timeout, Purpose.WATCH) as response:
            with telemetry.open_watches.labels(self._name).track_inprogress():
                yield _lines(request, response)

    async def close(self) -> None:
        """Close all connections; open watches end."""
        await self._loading.stop()
        await self._watches.close()
        for sessions in (self._sessions, *self._retired):
            await sessions.close()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        request, text = await self._text(method, path, query=query, body=body, content_type=content_type)
        try:
            found = parsed(text)
        except ValueError as error:
            raise ApiUnavailable(f"{request.text} was answered no JSON: {error}") from error
        if not isinstance(found, dict):
            raise ApiUnavailable(f"{request.text} was answered JSON that is no object")
        return found

    async def _text(
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
        request = RefusedRequest(self._name, method, path, query or {}, content_type)
        timeout = _timeout(seconds, silent=WAIT_SECONDS if purpose is Purpose.WATCH else None)
        async with self._answer(request, body, timeout, purpose) as response:
            return request, await _whole(request, response)

    @asynccontextmanager
    async def _answer(
        self, request: RefusedRequest, body: object, timeout: aiohttp.ClientTimeout, purpose: Purpose
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send it and give a 2xx answer whose body is still to be read; raise for any other."""
        async with self._any_answer(request, body, timeout, purpose) as response:
            if response.status // 100 != 2:
                raise refusal(request, response.status, await _start(request, response), response.headers)
            yield response

    @asynccontextmanager
    async def _any_answer(
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
            one = RefusedRequest(self._name, "GET", request.path, {"limit": "1"})
            (await _sent(client, one, None, _timeout(ANSWER_SECONDS))).close()

        answers_max = inf if "limit" in request.query else ANSWERS_MAX  # a page may take its time
        return await unless_hung(sent, ask, lambda late: late.close(), what=request.text, answers_max=answers_max)

    async def _reload(self, refused: Sessions) -> bool:
        """Read the configuration again after a 401. Gives whether there is now another client to try with."""
        async with self._reloading:
            if self._sessions is not refused:
                return True
            now = asyncio.get_running_loop().time
            if (began := now()) < self._rests_until:
                return False
            log.info("credentials or a certificate were refused, reading them again", extra={"cluster": self._name})
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


def _items(where: str, page: ListPage) -> list[JsonObject]:
    try:
        return page.items
    except ValueError as error:
        raise ApiUnavailable(f"GET {where} was answered JSON that is no list: {error}") from error


def _timeout(seconds: float, *, silent: float | None = None) -> aiohttp.ClientTimeout:
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
    """Whether a handshake failed, or the server closed the connection for our certificate: TLS 1.3 says so later."""
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
