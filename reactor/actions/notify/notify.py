"""Carries out Notify: a log line, a mail, a POST of a CloudEvent, or what Slack, PagerDuty and others take.

Every notifier is told for itself: one that is down or misspelt keeps no other from hearing. The action is then Failed
and comes again, and a notifier that was told is not told twice by this process. Another process cannot know: at least
once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

import aiohttp
from prometheus_client import Counter

from bus.errors import BusError
from bus.messages import Mode, Notify, Outcome
from reactor.actions.notify.incidents import post_of
from reactor.actions.notify.mail import letter
from reactor.actions.notify.mailing import send
from reactor.actions.notify.posting import NotifierUnavailable, key_of, post, url_of
from reactor.actions.outcomes import Declined, done, failed
from reactor.clients.credentials import proxy_of
from reactor.runtime.clock import Clock
from reactor.runtime.telemetry import REGISTRY
from reactor.settings.notifier_settings import Notifier

TOLD_MAX = 10_000  # about 2 MB of ids

_log = logging.getLogger(__name__)
notified = Counter(
    "reactor_notifications", "Notifications by notifier kind and fate.", ["kind", "fate"], registry=REGISTRY
)


class NotifiedLog:
    """Notifiers that have sent an action, so that a repeat for the sake of one is silent for the others."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._told

    def add(self, action: str, notifier: str) -> None:
        """Remember; the oldest are forgotten."""
        self._told[action, notifier] = None
        while len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)


async def carry_out(
    action: Notify,
    clock: Clock,
    *,
    notifiers: Mapping[str, Notifier],
    http: aiohttp.ClientSession,
    told: NotifiedLog,
    link: Callable[[Notify], Awaitable[str]] | None = None,
) -> Outcome:
    """Tell all notifiers that the action names. Done: all were told, `wrote` False where all were told before.

    Failed with the first reason: UnknownNotifier, NotifierUnavailable, NotifierRefused, UrlUnreadable; the detail names
    all who have not heard. Refused: DryRun.
    """
    if action.mode is not Mode.ENFORCE:
        return failed(
            action.id, clock, Declined("DryRun", f"mode {action.mode}: decided and recorded, not carried out")
        )
    if action.request and link is not None:
        action = action.model_copy(update={"link": await _made(link, action)})
    names = [name for name in dict.fromkeys(action.to) if (action.id, name) not in told]
    errors = await asyncio.gather(*(_tell(action, name, notifiers.get(name), clock, http, told) for name in names))
    wrong = [error for error in errors if error is not None]
    if not wrong:
        return done(action.id, clock, wrote=bool(names))
    outcome = failed(action.id, clock, wrong[0])
    _log.warning(
        "some notifiers failed: %s", "; ".join(map(str, wrong)),
        extra={"rule": action.rule, "action": action.id, "reason": outcome.reason},
    )  # fmt: skip
    return outcome.model_copy(update={"detail": "; ".join(map(str, wrong))[:1024], "wrote": len(wrong) < len(names)})


async def _made(link: Callable[[Notify], Awaitable[str]], action: Notify) -> str:
    """Give the link; empty where the bus does not give its key: people are told anyway, and use the page."""
    try:
        return await link(action)
    except BusError as error:
        _log.warning("a notification has no link", extra={"action": action.id, "reason": str(error)})
        return ""


async def _tell(
    action: Notify, name: str, notifier: Notifier | None, clock: Clock, http: aiohttp.ClientSession, told: NotifiedLog
) -> Declined | NotifierUnavailable | None:
    if notifier is None:
        notified.labels("unknown", "failed").inc()
        return Declined("UnknownNotifier", f"notifiers.{name}: a rule names this notifier, the settings do not")
    try:
        await _send(action, name, notifier, clock, http)
    except (Declined, NotifierUnavailable) as error:
        notified.labels(notifier.kind, "failed").inc()
        return error
    told.add(action.id, name)
    notified.labels(notifier.kind, "sent").inc()
    return None


async def _send(action: Notify, name: str, notifier: Notifier, clock: Clock, http: aiohttp.ClientSession) -> None:
    if notifier.kind == "log":
        about = {"rule": action.rule, "object": action.object, "reason": action.because}
        _log.info("%s", action.message, extra=about | ({"link": action.link} if action.link else {}))
        return
    if notifier.email is not None:
        await send(name, letter(action, notifier.email, clock.now()), notifier.email, clock)
        return
    what = post_of(notifier.kind, action, await key_of(name, notifier))
    await post(http, name, await url_of(name, notifier), what, proxy=proxy_of(notifier))
