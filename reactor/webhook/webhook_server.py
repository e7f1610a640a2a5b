"""The receiver's HTTP: posts are journaled on the bus, then answered. Nothing else happens inside a request.

What an answer means to Alertmanager (measured): 2xx is done. 5xx is tried again for a while, and then at each flush.
4xx, 429 included, is not tried again before the next flush. A redirect is followed as GET and counts as delivered,
although its body is lost. So: 503 whenever trying again may help, 4xx only where it cannot, and never a redirect.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Middleware

from bus import subjects
from bus.errors import BusError, NotPermitted
from bus.port import Outgoing
from reactor.runtime import telemetry, tracing
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable
from reactor.runtime.log_throttle import LogThrottle
from reactor.settings.receiver_settings import Receiver
from reactor.webhook.auth import Guard
from reactor.webhook.bodies import Bodies
from reactor.webhook.body import BadBody
from reactor.webhook.health_routes import HealthRoutes, Ready
from reactor.webhook.refusal import Refusal, as_json
from reactor.webhook.taking import TakenBody
from reactor.webhook.token_bucket import TokenBucket

log = logging.getLogger(__name__)

JOURNAL_SECONDS = 3.0  # Alertmanager gives up after max(10 s, group_interval); it should hear 503 before
HEALTH_BODY_BYTES = 1024  # a question for health has none
IN_HANDS_MAX = 2
"""Most messages of a source, some 125 alerts each, in flight in our routers: windows wait for them."""
LOOK_SECONDS = 0.05
LARGE_POST_PAUSE_SECONDS = 0.5
"""Seconds between two large posts that are stored at once: by then the routers have taken the first one up, and it
counts."""
DENIED_SECONDS = 60.0
"""Seconds after the bus has denied it in which nothing is stored beside the inbox: users may be printed again
meanwhile."""
OWED_SECONDS = 60.0
"""A source whose posts wait for so long already is told to come again."""
BODY_MEMORY_BYTES = 256 << 20
"""Memory in bytes of the process that reads large bodies, for one of the default size; it has in proportion to
`maxBodyBytes`."""
_SECRET_KEY = re.compile(r"(?i)token|secret|passw|auth|credential|api_?key|^key$|^jwt$")


class Journal(Protocol):
    """The part of the bus that is needed here."""

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        """Store many. Raises Unavailable, Refused."""
        ...


class WebhookServer:
    """The application. `bus` is None while starting up, `stopping` is set when posts shall go to another process."""

    def __init__(
        self, settings: Receiver, *, sources: Collection[str], bus: Journal | None, ready: Ready, clock: Clock,
        in_hands: Counter[str] | None = None,
    ) -> None:  # fmt: skip
        """`in_hands`: how many posts of each source our routers have in flight, by their subject; None: no
        router runs here.

        `sources`: names of the AlertmanagerWebhook sources, which may change later. Raises SettingsError where a
        secret is missing."""
        self.settings = settings
        self.sources = frozenset(sources)
        self.bus = bus
        self.stopping = False
        self.on_refused: Callable[[], None] = lambda: None
        """Called for each post that the bus does not take."""
        self.journal_seconds = JOURNAL_SECONDS
        self._guard = Guard(settings)
        self.clock = clock
        self._throttle = LogThrottle(clock)
        self._posts: Counter[str] = Counter()
        self._in_hands = in_hands
        self._may_park_at = 0.0
        self._large_again_at = 0.0
        self._buckets: dict[str, TokenBucket] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Lock of each source for the post that may go next, where the routers have enough."""
        self._bodies = Bodies(max(BODY_MEMORY_BYTES, 10 * settings.max_body_bytes))
        self._health = HealthRoutes(lambda: self.unready, ready, clock)

    @property
    def unready(self) -> str:
        """Reason why no post is taken at all at the moment; empty: they are."""
        if self.stopping:
            return "stopping"
        # A process without sources takes no posts: it serves /livez, /readyz and /metrics, and needs no bus here.
        return "starting up: no bus yet" if self.bus is None and self.sources else ""

    def app(self, *middlewares: Middleware) -> web.Application:
        """Give the application with its routes."""
        app = web.Application(client_max_size=self.settings.max_body_bytes, middlewares=[*middlewares, as_json])
        app.add_routes(
            [
                # Both by name: a redirect to the one with the slash would lose the body.
                web.post("/v1/alerts/{source}", self._post),
                web.post("/v1/alerts/{source}/", self._post),
                *self._health.routes(),
            ]
        )
        app.on_cleanup.append(self._ended)
        return app

    def health_app(self, *middlewares: Middleware) -> web.Application:
        """Give an application that answers for health and metrics alone."""
        app = web.Application(client_max_size=HEALTH_BODY_BYTES, middlewares=[*middlewares, as_json])
        app.add_routes(self._health.routes())
        return app

    async def _post(self, request: web.Request) -> web.Response:
        started = self.clock.monotonic()
        name = request.match_info["source"]
        known = name if name in self.sources else "unknown"  # a stranger must not make new time series
        try:
            response = await self._take(request, name)
        except Refusal as refusal:
            response = refusal.response()
            if refusal.limit:
                telemetry.webhook_limits.labels(refusal.limit).inc()
            if self._throttle((known, refusal.code, refusal.text)):
                extra = {"source": known, "code": refusal.code, "reason": refusal.text, "peer": request.remote}
                log.warning("a post is refused", extra=extra)
        telemetry.webhook_posts.labels(known, str(response.status)).inc()
        telemetry.webhook_seconds.labels(known).observe(self.clock.monotonic() - started)
        return response

    async def _take(self, request: web.Request, source: str) -> web.Response:
        self._check(request, source)
        most, of_a_source = self.settings.posts_at_once, self.settings.posts_of_a_source
        if self._posts.total() >= most:
            raise Refusal(503, f"{most} posts are being taken already", limit="postsAtOnce")
        if self._posts[source] >= of_a_source:
            text = f"{of_a_source} posts of this source are being taken already"
            raise Refusal(503, text, limit="postsOfASource")
        self._posts[source] += 1
        try:
            with tracing.span("webhook", tracing.usable(request.headers.get("traceparent")), source=source) as span:
                taken = await self._read(request, source)
                span.note(alerts=taken.alerts, quarantined=taken.quarantined)
                self._report(source, taken)
                await self._journal(source, taken, span.traceparent)
        finally:
            self._posts[source] -= 1
        return web.json_response({"taken": taken.alerts, "quarantined": taken.quarantined})

    async def _ended(self, _: web.Application) -> None:
        await self._bodies.close()

    def _check(self, request: web.Request, source: str) -> None:
        """Check all that can be told from the headers."""
        if any(_SECRET_KEY.search(key) for key in request.query):
            # Alertmanager shows the URL in its page and its logs.
            raise Refusal(400, "a secret in the URL is no secret: send it as Authorization header")
        certificate = bool(request.get_extra_info("peercert"))
        if not self._guard.admits(request.headers.get("Authorization"), certificate=certificate):
            raise Refusal(401, "unauthorized", {"WWW-Authenticate": self._guard.challenge})
        if source not in self.sources:
            known = ", ".join(sorted(self.sources)) or "none"
            raise Refusal(404, f"no AlertmanagerWebhook source has this name; known: {known}")
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refusal(415, "Content-Encoding is not taken: 200 kB of gzip may become 200 MB")
        kind = request.content_type
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise Refusal(415, "Content-Type must be application/json")
        if self.unready:
            raise Refusal(503, self.unready)

    async def _read(self, request: web.Request, source: str) -> TakenBody:
        raw = await self._receive(request)
        try:
            most, now = self.settings.max_alerts_per_post, self.clock.now()
            return await self._bodies.take(raw, source=source, at=now, alerts_max=most)
        except BadBody as error:
            raise Refusal(error.code, str(error), limit=error.limit) from error
        except Retryable as error:
            raise Refusal(503, str(error)) from error

    async def _receive(self, request: web.Request) -> bytes:
        limit, seconds = self.settings.max_body_bytes, self.settings.body_seconds
        if (request.content_length or 0) > limit:
            raise Refusal(413, f"body: at most {limit} bytes", limit="maxBodyBytes")
        try:
            async with asyncio.timeout(seconds):
                return await request.read()
        except TimeoutError:
            raise Refusal(408, f"the body did not come within {seconds:g} s", limit="bodySeconds") from None
        except web.HTTPRequestEntityTooLarge:
            raise Refusal(413, f"body: at most {limit} bytes", limit="maxBodyBytes") from None
        except web.RequestPayloadError as error:
            raise Refusal(400, f"body: {error}") from error

    async def _journal(self, source: str, taken: TakenBody, trace: str | None) -> None:
        """Store all of it, not faster than the source may."""
        now = asyncio.get_running_loop().time
        per_second, at_once = self.settings.alerts_per_second, self.settings.alerts_at_once
        bucket = self._buckets.setdefault(source, TokenBucket(per_second, at_once, now()))
        if bucket.owed(now()) > OWED_SECONDS:
            text = f"alerts of this source come faster than {per_second} a second"
            raise Refusal(503, text, limit="alertsPerSecond")
        aside = self._may_wait_stored(source, len(taken.messages), now())
        ready: list[Outgoing] = []
        for untraced, size in zip(taken.messages, taken.sizes, strict=True):
            message = untraced if trace is None else untraced._replace(traceparent=trace)
            wait = bucket.take(size, now())
            if wait <= 0 and not self._turns[source].locked():
                if self._routers_have_room(message.subject, len(ready)):
                    ready.append(message)
                    continue
                if aside:
                    ready.append(message._replace(subject=subjects.parked(source)))
                    continue
            await self._store(source, ready)
            ready = []
            await asyncio.sleep(wait)
            await self._store_in_turn(source, message)
        await self._store(source, ready)

    async def _store_in_turn(self, source: str, message: Outgoing) -> None:
        """Store it when the routers have room for it, and for all of this source that has waited longer."""
        try:
            async with asyncio.timeout(OWED_SECONDS), self._turns[source]:
                while True:
                    await asyncio.sleep(LOOK_SECONDS)  # what was just stored is on its way to them
                    if self._routers_have_room(message.subject):
                        break
                await self._store(source, [message])
        except TimeoutError:
            raise Refusal(503, "the routers have enough of this source in flight", limit="inHands") from None

    def _may_wait_stored(self, source: str, messages: int, now: float) -> bool:
        """True if posts that the routers have no room for may wait in a stream of their own (decision 0028).

        One large post of a source at a time does, as far as its bucket admits it: what more comes waits unanswered.
        """
        if now < self._may_park_at or self._in_hands is None or messages <= IN_HANDS_MAX or now < self._large_again_at:
            return False
        if self._in_hands[subjects.parked(source)]:
            return False
        self._large_again_at = now + LARGE_POST_PAUSE_SECONDS
        return True

    def _routers_have_room(self, subject: str, more: int = 0) -> bool:
        return self._in_hands is None or self._in_hands[subject] + more < IN_HANDS_MAX

    async def _store(self, source: str, messages: Sequence[Outgoing]) -> None:
        if not messages:
            return
        if self.bus is None:
            raise Refusal(503, self.unready)  # it went while the body came
        try:
            async with asyncio.timeout(self.journal_seconds):
                await self.bus.publish_all(messages)
        except TimeoutError:
            self.on_refused()
            raise Refusal(503, f"the bus did not confirm within {self.journal_seconds:g} s") from None
        except NotPermitted as error:
            if all(one.subject == subjects.webhook(source) for one in messages):
                self.on_refused()
                raise Refusal(503, f"the bus cannot take it: {error}") from error
            # Users of NATS of version 0.1.0 have no right there: all of it goes into the inbox, as it did then.
            self._may_park_at = asyncio.get_running_loop().time() + DENIED_SECONDS
            log.warning("large posts are answered late: %s. Print the users again: reactor bus permissions", error)
            await self._store(source, [one._replace(subject=subjects.webhook(source)) for one in messages])
        except BusError as error:
            self.on_refused()
            raise Refusal(503, f"the bus cannot take it: {error}") from error

    def _report(self, source: str, taken: TakenBody) -> None:
        """Count and tell what of the body is not taken."""
        if taken.quarantined:
            telemetry.webhook_alerts.labels(source, "quarantined").inc(taken.quarantined)
            for reason in taken.reasons:
                if self._throttle((source, reason)):
                    log.warning("alerts are quarantined", extra={"source": source, "reason": reason})
        if taken.truncated:
            telemetry.webhook_truncated.labels(source).inc(taken.truncated)
            if self._throttle((source, "truncated")):
                extra = {"source": source, "left_out": taken.truncated, "fix": "max_alerts: 0 in the receiver"}
                log.warning("Alertmanager leaves alerts out", extra=extra)
