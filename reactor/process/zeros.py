"""Counters of what is rare begin at 0. One that begins with its first event has no increase by it, for rate() and for
alerts, and until then a dashboard shows that it has no data, as if it asked for what does not exist."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from reactor.runtime import telemetry
from reactor.settings.model import Settings
from rules.loader import RuleSet

_LISTENERS = ("receiver", "health")
_CONNECTION_LIMITS = ("maxConnections", "maxConnectionsPerPeer")
_CONNECTION_FATES = ("half-open", "idle", "refused")
POST_LIMITS = (
    "alertsPerSecond", "bodySeconds", "bodyWork", "depth", "inHands", "maxAlertsPerPost", "maxBodyBytes", "postsAtOnce",
    "postsOfASource",
)  # fmt: skip
"""Limits at which a post is refused, as the label `limit` names them."""
_EVENT_FAILURES = ("ApiUnavailable", "Forbidden", "Invalid")


def begin_at_zero(settings: Settings, rules: RuleSet, roles: Collection[str]) -> None:
    """Make the counters that these settings and rules may lead to, as far as their labels are known."""
    for labels in product(_LISTENERS, _CONNECTION_LIMITS, _CONNECTION_FATES):
        telemetry.connections_closed.labels(*labels)
    for source in rules.sources:
        telemetry.targets_refused.labels(source.name)
        telemetry.alerts_refused.labels(source.name)
        if source.kind == "AlertmanagerWebhook":
            telemetry.webhook_truncated.labels(source.name)
    for limit in POST_LIMITS if "receiver" in roles else ():
        telemetry.webhook_limits.labels(limit)
    for cluster in settings.clusters:
        telemetry.lists_doubted.labels(cluster)
    for prometheus in settings.prometheus:
        telemetry.prometheus_warnings.labels(prometheus)
    if "executor" in roles:
        _of_executors(settings)


def _of_executors(settings: Settings) -> None:
    from reactor.actions import events  # what other roles need not read in
    from reactor.actions.notify import notify

    peers = [
        *settings.clusters,
        *(f"loadBalancer {name}" for name in settings.load_balancers),
        *(f"notifier {name}" for name in settings.notifiers),
    ]
    for peer, reason in product(peers, ("busy", "silent")):
        telemetry.slots_refused.labels(peer, reason)
    for notifier, fate in product(settings.notifiers.values(), ("sent", "failed")):
        notify.notified.labels(notifier.kind, fate)
    for reason in _EVENT_FAILURES:
        events.untold.labels(reason)
