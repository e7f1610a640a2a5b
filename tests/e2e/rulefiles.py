"""The rule files of these tests: small, and as a user would write them."""

from __future__ import annotations

import signal

from tests.e2e.service import Service
from tests.e2e.waiting import until_told

HEAD = """
apiVersion: reactor/v1
sources:
- {name: readiness, kind: EndpointsWatch, cluster: east}
"""

ALERTS = """
- name: am
  kind: AlertmanagerWebhook
  matchers: alertname="ShopDown"
  target: service/east/shop/{service}
"""

BELIEVED = """
- name: believed
  kind: AlertmanagerWebhook
  matchers: alertname="ShopDown"
  target: service/east/shop/{service}
  onResolved: Healthy
"""


def failover(name: str = "shop", *, selector: str = "team=shop", toleration: float = 0, mode: str = "Enforce") -> str:
    """A rule for every TrafficSplit with these labels."""
    return f"""
- name: {name}
  kind: TrafficFailover
  mode: {mode}
  route: {{cluster: east, kind: TrafficSplit, selector: {selector}}}
  tolerationSeconds: {toleration}
"""


def document(*sources: str, rules: str) -> str:
    """A whole rule file; it watches the endpoints of the shop's services besides these sources."""
    return HEAD + "".join(sources) + "rules:" + rules


def rewrite(service: Service, text: str, *, now: bool = True) -> None:
    """Change the rule file as an editor does; `now`: and say so (SIGHUP)."""
    new = service.folder / "rules.new"
    new.write_text(text, encoding="utf-8")
    new.rename(service.folder / "rules.yaml")
    if now:
        service.process.send_signal(signal.SIGHUP)


async def reloaded(service: Service, result: str, times: int = 1) -> None:
    async def counted() -> bool:
        return await service.metric("reactor_rule_reloads_total", result=result) == times

    await until_told(counted, f"{times} reloads ended in {result}")
    await until_told(service.is_ready, "it is ready")
