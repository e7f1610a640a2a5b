"""Posts a notification over HTTP. A notifier's URL is a secret: no error and no log line says it."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import stamina

from reactor.actions.notify.incidents import OPSGENIE, PAGERDUTY, Post
from reactor.actions.outcomes import Declined
from reactor.runtime.errors import Retryable
from reactor.runtime.threads import FILES
from reactor.settings.notifier_settings import Notifier

TIMEOUT_SECONDS = 5.0
ATTEMPTS_MAX = 3
SEND_SECONDS = 9.0
"""Seconds after which no attempt begins, so that all is over before the action is published again (15 s)."""
USUAL_URLS = {"pagerduty": PAGERDUTY, "opsgenie": OPSGENIE}
"""URLs where the settings name no other; in Europe PagerDuty and Opsgenie have others."""


class NotifierUnavailable(Retryable):
    """The notifier did not answer in time, or answered 429 or 5xx."""


async def url_of(name: str, notifier: Notifier) -> str:
    """Give the URL; a file is read every time, because secrets are rotated."""
    if notifier.url is not None:
        return notifier.url.get_secret_value()
    if notifier.url_file is None:
        if (usual := USUAL_URLS.get(notifier.kind)) is not None:
            return usual
        raise Declined("UrlUnreadable", f"notifiers.{name}: needs url or urlFile")
    return await read_secret(notifier.url_file, f"notifiers.{name}.urlFile")


async def key_of(name: str, notifier: Notifier) -> str:
    """Give the key; empty where the kind has none. A file is read every time, because secrets are rotated."""
    if notifier.key is not None:
        return notifier.key.get_secret_value()
    return await read_secret(notifier.key_file, f"notifiers.{name}.keyFile") if notifier.key_file is not None else ""


async def read_secret(file: Path, where: str) -> str:
    """Give what a file of the settings holds; `where`: its key, for the error. Raises Declined."""
    try:
        return (await FILES.run(file.read_text)).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Declined("UrlUnreadable", f"{where}: {error}") from error


async def post(http: aiohttp.ClientSession, name: str, url: str, what: Post, *, proxy: str | None = None) -> None:
    """Post it. Raises Declined, NotifierUnavailable."""
    async for attempt in stamina.retry_context(
        on=NotifierUnavailable, attempts=ATTEMPTS_MAX, timeout=SEND_SECONDS,
        wait_initial=0.2, wait_max=1.0, wait_jitter=0.2,
    ):  # fmt: skip
        with attempt:
            _judge(name, await _status(http, name, url.rstrip("/") + what.path if what.path else url, what, proxy))


async def _status(http: aiohttp.ClientSession, name: str, url: str, what: Post, proxy: str | None) -> int:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    headers = {"Content-Type": what.content_type, **what.headers}
    try:
        # A redirect is not followed: it would take the message, and a token in the path, to another host.
        async with http.post(
            url, data=what.body, headers=headers, timeout=timeout, allow_redirects=False, proxy=proxy
        ) as response:
            return response.status
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
        # `from None`: the error's own words hold the URL.
        raise Declined("UrlUnreadable", f"notifiers.{name}: its URL is none that can be posted to") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NotifierUnavailable(f"notifiers.{name}: no answer ({type(error).__name__})") from None


def _judge(name: str, status: int) -> None:
    if status == 429 or status >= 500:
        raise NotifierUnavailable(f"notifiers.{name}: answered {status}")
    if not 200 <= status < 300:
        raise Declined("NotifierRefused", f"notifiers.{name}: answered {status}: check its URL")
