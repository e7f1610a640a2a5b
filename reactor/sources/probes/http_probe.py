"""HttpProbe: GET or HEAD a URL.

    - name: shop-health
      kind: HttpProbe
      target: service/east/shop/checkout
      url: https://checkout.east.example/healthz
      expectStatus: 200-299        # default 200-399
      expectBody: '"status":"ok"'  # RE2, in the first 64 KiB

A try fails where the name does not resolve, nothing answers in `timeoutSeconds`, the certificate is not trusted, the
status is another, or the body does not match. Redirects are answers, unless `followRedirects`.
"""

from __future__ import annotations

import aiohttp

from reactor.sources.probes.probing import TryFailed, probe
from reactor.sources.source_context import SourceContext
from rules.rulefile.regex import compiled
from rules.rulefile.sources import HttpProbe

BODY_BYTES = 64 << 10


async def run(source: HttpProbe, world: SourceContext) -> None:
    """Probe until cancelled."""

    async def attempt() -> str:
        return await _tried(source, world.http)

    await probe(source, world, attempt)


async def _tried(source: HttpProbe, http: aiohttp.ClientSession) -> str:
    try:
        async with http.request(
            source.method, source.url, headers=source.headers, allow_redirects=source.follow_redirects,
            timeout=aiohttp.ClientTimeout(total=source.timeout_seconds),
        ) as response:  # fmt: skip
            if not accepts(source.expect_status, response.status):
                raise TryFailed(f"HTTP {response.status}, expected {source.expect_status}")
            if source.expect_body is not None:
                body = await _beginning(response)
                if compiled(source.expect_body).search(body) is None:
                    raise TryFailed(f"HTTP {response.status}, and the body does not match {source.expect_body!r}")
            return f"HTTP {response.status}"
    except TimeoutError:  # an OSError too, and told by who set the time
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise TryFailed(_words(error)) from error


async def _beginning(response: aiohttp.ClientResponse) -> str:
    body = b""
    while len(body) < BODY_BYTES and (chunk := await response.content.read(BODY_BYTES - len(body))):
        body += chunk
    return body.decode("utf-8", "replace")


def _words(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return (cause.strerror if isinstance(cause, OSError) else "") or str(cause) or type(cause).__name__


def accepts(expected: str | int, status: int) -> bool:
    """True if the status is one of `expected`: `200`, `200-299` or `200,204,301-302`."""
    for part in str(expected).split(","):
        low, _, high = part.partition("-")
        if int(low) <= status <= int(high or low):
            return True
    return False
