"""How a notification goes out over HTTP. A notifier's URL is a secret: no error and no log line says it."""

from __future__ import annotations

import json

import aiohttp
import stamina

from bus.envelope import encode
from bus.messages import Notify
from reactor.actions.outcomes import Unfit
from reactor.errors import Retryable
from reactor.settings import Notifier
from reactor.threads import FILES

TIMEOUT_SECONDS = 5.0
ATTEMPTS_MAX = 3
SEND_SECONDS = 9.0
"""No attempt begins later than this, so that all is over before the action is published again (15 s)."""
_SOURCE = "/reactor/executor"


class NotifierUnavailable(Retryable):
    """No answer in time, 429 or 5xx."""


def payload(kind: str, action: Notify) -> tuple[bytes, str]:
    """Give the body and its content type: the same action is the same bytes, and a CloudEvent carries its id."""
    if kind == "slack":
        # Slack's own three escapes: nothing in a label may become a link or call @channel.
        text = action.message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return json.dumps({"text": text}).encode(), "application/json"
    body = encode(action, id=action.id, source=_SOURCE, time=action.decided_at)
    return body, "application/cloudevents+json"


async def url_of(name: str, notifier: Notifier) -> str:
    """Give the URL; a file is read every time, because secrets are rotated."""
    if notifier.url is not None:
        return notifier.url.get_secret_value()
    if notifier.url_file is None:
        raise Unfit("UrlUnreadable", f"notifiers.{name}: needs url or urlFile")
    try:
        return (await FILES.run(notifier.url_file.read_text)).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unfit("UrlUnreadable", f"notifiers.{name}.urlFile: {error}") from error


async def post(
    http: aiohttp.ClientSession, name: str, url: str, body: bytes, content_type: str, *, proxy: str | None = None
) -> None:
    async for attempt in stamina.retry_context(
        on=NotifierUnavailable, attempts=ATTEMPTS_MAX, timeout=SEND_SECONDS,
        wait_initial=0.2, wait_max=1.0, wait_jitter=0.2,
    ):  # fmt: skip
        with attempt:
            _judge(name, await _status(http, name, url, body, content_type, proxy))


async def _status(
    http: aiohttp.ClientSession, name: str, url: str, body: bytes, content_type: str, proxy: str | None
) -> int:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    headers = {"Content-Type": content_type}
    try:
        # A redirect is not followed: it would take the message, and a token in the path, to another host.
        async with http.post(
            url, data=body, headers=headers, timeout=timeout, allow_redirects=False, proxy=proxy
        ) as response:
            return response.status
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
        # `from None`: the error's own words hold the URL.
        raise Unfit("UrlUnreadable", f"notifiers.{name}: its URL is none that can be posted to") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NotifierUnavailable(f"notifiers.{name}: no answer ({type(error).__name__})") from None


def _judge(name: str, status: int) -> None:
    if status == 429 or status >= 500:
        raise NotifierUnavailable(f"notifiers.{name}: answered {status}")
    if not 200 <= status < 300:
        raise Unfit("NotifierRefused", f"notifiers.{name}: answered {status}: check its URL")
