"""The rule files of these tests: small, and as a user would write them."""

from __future__ import annotations

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
