"""A load balancer behind a user's own server: GET gives the current weights, a signed POST replaces them if they are
still those that were read.

Reactor-Timestamp: 1795435975
Reactor-Signature: sha256=<hex of HMAC-SHA256(secret, "<timestamp>.<METHOD>.<path and query>." + body)>
"""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
from typing import Annotated

import aiohttp
from pydantic import BaseModel, Field, StringConstraints, ValidationError
from yarl import URL

from reactor.clients.balancers.balancer_port import WeightChange, Weights
from reactor.clients.credentials import Trust, proxy_of, trust
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable, SettingsError, Terminal
from reactor.runtime.threads import FILES
from reactor.settings.balancer_settings import WebhookSettings as Settings

CONNECTIONS_MAX = 4
ANSWER_BYTES_MAX = 1 << 18
_WORDS = StringConstraints(max_length=253)


class WebhookReply(BaseModel):
    """Reply of the other side. Unknown keys are ignored."""

    weights: dict[Annotated[str, _WORDS], Annotated[int, Field(ge=0, le=1_000_000, strict=True)]] = Field(
        min_length=1, max_length=1000
    )
    version: Annotated[str, StringConstraints(min_length=1, max_length=253)] | Annotated[int, Field(strict=True)]
    """Differs after each change, also one by another writer."""
    life: Annotated[str, _WORDS] = ""
    """Id of the life of one that forgets its weights when it starts: another one after each start."""


class Webhook:
    """One URL; implements LoadBalancer."""

    def __init__(self, name: str, settings: Settings, clock: Clock) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._url = URL(str(settings.url))
        self._session: aiohttp.ClientSession | None = None
        self._trusted: Trust | None = None

    @property
    def every_seconds(self) -> float:
        return self._settings.every_seconds

    @property
    def timeout_seconds(self) -> float:
        return self._settings.timeout_seconds

    async def read(self) -> Weights:
        return await self._ask("GET", b"", {})

    async def write(self, seen: Weights, change: WeightChange) -> Weights:
        wanted = {**seen.by_name, **change.weights}
        said = {
            "loadBalancer": self.name, "weights": wanted, "ifVersion": seen.version, "decision": change.decision,
        }  # fmt: skip
        key = hashlib.sha256(f"{change.key}\n{seen.version}".encode()).hexdigest()[:32]
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return await self._ask("POST", json.dumps(said).encode(), headers)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def _where(self) -> str:
        return f"loadBalancers.{self.name}"

    async def _ask(self, method: str, body: bytes, headers: dict[str, str]) -> Weights:
        timestamp = str(int(self._clock.now().timestamp()))
        signed = signature(await self._secret(), timestamp, method, self._url.raw_path_qs, body)
        headers = {**headers, "Reactor-Timestamp": timestamp, "Reactor-Signature": signed}
        try:
            # A redirect is no answer: what is signed for one place is for no other.
            async with self._opened().request(
                method, self._url, data=body or None, headers=headers, allow_redirects=False, ssl=self._trust()
            ) as response:
                text = await _read(response)
                if response.status != 200:
                    raise webhook_error(self._where, method, response.status, text)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnavailable(f"{self._where}: {method} got no answer: {error or type(error).__name__}") from error
        return weights_of(self._where, text)

    async def _secret(self) -> bytes:
        if self._settings.secret is not None:
            return self._settings.secret.get_secret_value().encode()
        file = self._settings.secret_file
        try:
            secret = (await FILES.run(file.expanduser().read_bytes)).strip() if file is not None else b""
        except OSError as error:
            raise SettingsError(f"{self._where}.secretFile: {error}") from error
        if not secret:
            raise SettingsError(f"{self._where}.secretFile: {file} is empty: nothing is signed with no key")
        return secret

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self.timeout_seconds)
            connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
            self._session = aiohttp.ClientSession(timeout=timeout, connector=connector, proxy=proxy_of(self._settings))
        return self._session

    def _trust(self) -> ssl.SSLContext | bool:
        if self._trusted is None:
            self._trusted = trust(self._where, self._settings)
        return self._trusted()


async def _read(response: aiohttp.ClientResponse) -> bytes:
    found = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        found += chunk
        if len(found) > ANSWER_BYTES_MAX:
            raise Invalid(f"{response.url.host}: its answer has more than {ANSWER_BYTES_MAX} bytes")
    return bytes(found)


def signature(secret: bytes, timestamp: str, method: str, path: str, body: bytes) -> str:
    """Give the value of Reactor-Signature. Pure."""
    signed = f"{timestamp}.{method}.{path}.".encode() + body
    return "sha256=" + hmac.new(secret, signed, hashlib.sha256).hexdigest()


def weights_of(where: str, text: bytes) -> Weights:
    """Read an answer. Pure. Raises Invalid."""
    try:
        answer = WebhookReply.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "it"
        raise Invalid(f"{where}: its answer is not as documented: {place}: {first['msg']}") from error
    return Weights(answer.weights, version=str(answer.version), life=answer.life)


def webhook_error(where: str, method: str, status: int, text: bytes) -> Terminal | Retryable:
    """Give the error for an answer other than 200. Pure."""
    words = " ".join(text[:300].decode("utf-8", "replace").split())
    message = f"{where}: {method} was answered {status}: {words}"
    if status in (401, 403):
        return Forbidden(f"{message}; do both sides have the same secret, and clocks that agree?")
    if status in (404, 410):
        return NotFound(message)
    if status in (409, 412):
        return Conflict(message)
    if status in (408, 425, 429) or status >= 500:
        return ApiUnavailable(message, status=status)
    return Invalid(message)
