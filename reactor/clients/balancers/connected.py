"""The load balancers of the settings, each made at its first use."""

from __future__ import annotations

from collections.abc import Mapping

from reactor.clients.balancers.balancer_port import LoadBalancer
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.balancer_settings import HAProxySettings as HAProxySettings
from reactor.settings.balancer_settings import LoadBalancerSettings
from reactor.settings.balancer_settings import Route53Settings as Route53Settings
from reactor.settings.balancer_settings import TargetGroupsSettings as TargetGroupsSettings

GLOBAL = "us-east-1"
"""Region by which requests to Route 53, which has no regions, are signed."""


def _of_amazon(name: str, settings: Route53Settings | TargetGroupsSettings, proxy: str | None) -> LoadBalancer:
    from reactor.clients.aws import LazyAws
    from reactor.clients.balancers.route53 import Route53
    from reactor.clients.balancers.target_groups import TargetGroups

    what = f"loadBalancers.{name}"
    if isinstance(settings, Route53Settings):
        return Route53(name, settings, LazyAws("route53", GLOBAL, what, proxy))
    return TargetGroups(name, settings, LazyAws("elbv2", settings.region, what, proxy))


class LoadBalancers:
    """Load balancers of the settings, by name."""

    def __init__(
        self, settings: Mapping[str, LoadBalancerSettings], clock: Clock, *, aws_proxy: str | None = None
    ) -> None:
        """`aws_proxy`: on the way to Amazon's APIs."""
        self._aws_proxy = aws_proxy
        self._settings = settings
        self._clock = clock
        self._known: dict[str, LoadBalancer] = {}

    def get(self, name: str, kind: str) -> LoadBalancer:
        """Give one. Raises SettingsError where the settings have none of this name and kind."""
        settings = self._settings.get(name)
        if settings is None:
            known = ", ".join(sorted(self._settings)) or "none"
            raise SettingsError(f"loadBalancers.{name}: rules name it, the settings do not (they name: {known})")
        if settings.kind != kind:
            raise SettingsError(f"loadBalancers.{name}: rules call it {kind}, the settings {settings.kind}")
        if name not in self._known:
            self._known[name] = self._made(name, settings)
        return self._known[name]

    def _made(self, name: str, settings: LoadBalancerSettings) -> LoadBalancer:
        # Imported by who has one: aiohttp, and boto3 the more, take their time.
        if isinstance(settings, HAProxySettings):
            from reactor.clients.balancers.haproxy import HAProxy

            return HAProxy(name, settings)
        if isinstance(settings, Route53Settings | TargetGroupsSettings):
            return _of_amazon(name, settings, self._aws_proxy)
        from reactor.clients.balancers.webhook_balancer import Webhook

        return Webhook(name, settings, self._clock)

    async def close(self) -> None:
        """Close their connections."""
        for balancer in self._known.values():
            await balancer.close()
