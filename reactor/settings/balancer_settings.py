"""The settings of load balancers: what a rule's route names when it is in no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, HttpUrl, SecretStr, StringConstraints, model_validator

from reactor.settings.part import SettingsPart

Every = Annotated[float, Field(ge=0.2, le=3600)]
Timeout = Annotated[float, Field(gt=0, le=5)]
"""Seconds: short enough that writing and reading back are over before the action is published again."""
HAProxyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]+$", max_length=253)]
"""Name as HAProxy allows it."""


class HAProxySettings(SettingsPart):
    """One HAProxy process, through its Runtime API: the weights of the servers of one backend."""

    kind: Literal["HAProxy"]
    """HAProxy: weights of servers of a backend."""
    socket: Path | None = None
    """Its `stats socket`, with `level admin`; or `address`."""
    address: str | None = None
    """host:port of a `stats socket` on TCP. Without a password: each client that reaches it may do all."""
    backend: HAProxyName
    """The backend (or listen section) whose servers are meant; `service` in rules is a server's name."""
    every_seconds: Every = 2
    """Seconds between two reads. Weights that a reload has reset are put back after this time at most."""
    timeout_seconds: Timeout = 2
    """Seconds for each exchange with it."""

    @model_validator(mode="after")
    def _one_way(self) -> HAProxySettings:
        if (self.socket is None) == (self.address is None):
            msg = "needs either socket or address"
            raise ValueError(msg)
        host, _, port = (self.address or "localhost:1").rpartition(":")
        if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65_536:
            msg = f"address: {self.address!r} is not host:port"
            raise ValueError(msg)
        return self


class WebhookSettings(SettingsPart):
    """Anything of your own that keeps weights, and answers GET and signed POST at one URL."""

    kind: Literal["Webhook"]
    """Webhook: a server of your own."""
    url: HttpUrl
    """URL of its API. Not with a password in it."""
    secret: SecretStr | None = None
    """The key of the signature (HMAC-SHA256); or `secretFile`."""
    secret_file: Path | None = None
    """Read again for each request, for secrets are rotated."""
    ca_file: Path | None = None
    """The CA of its certificate. Default: the system's."""
    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there."""
    every_seconds: Every = 5
    """Seconds between two reads."""
    timeout_seconds: Timeout = 2
    """Seconds for each request."""

    @model_validator(mode="after")
    def _signed(self) -> WebhookSettings:
        if (self.secret is None) == (self.secret_file is None):
            msg = "needs either secret or secretFile"
            raise ValueError(msg)
        if self.secret is not None and not self.secret.get_secret_value():
            msg = "secret is empty"
            raise ValueError(msg)
        if self.url.username or self.url.password:
            msg = "url: no user and no password in it: the signature says who we are"
            raise ValueError(msg)
        return self


class Route53Settings(SettingsPart):
    """Weighted records of one name and type in Amazon Route 53. Needs the extra `aws`."""

    kind: Literal["Route53"]
    """Route53: weighted records."""
    hosted_zone: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]+$", max_length=64)]
    """The hosted zone's id."""
    record: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9*_.-]+$", max_length=255)]
    """The records' name, as `shop.example.com`; `service` in rules is a record's set identifier."""
    type: Literal["A", "AAAA", "CNAME"]
    """The records' type."""
    every_seconds: Every = 15
    """Seconds between two reads. Amazon allows an account five requests a second in all."""


class TargetGroupsSettings(SettingsPart):
    """The target groups that one listener rule of an Application Load Balancer forwards to. Needs the extra `aws`."""

    kind: Literal["TargetGroups"]
    """TargetGroups: weights of a listener rule."""
    rule_arn: Annotated[
        str, StringConstraints(pattern=r"^arn:[a-z-]+:elasticloadbalancing:[a-z0-9-]+:\d+:listener-rule/app/\S+$")
    ]
    """The rule's ARN, not that of a listener's default rule; `service` in rules is a target group's name."""
    every_seconds: Every = 15
    """Seconds between two reads."""

    @property
    def region(self) -> str:
        """The region that its ARN names."""
        return self.rule_arn.split(":")[3]


LoadBalancerSettings = Annotated[
    HAProxySettings | WebhookSettings | Route53Settings | TargetGroupsSettings, Field(discriminator="kind")
]
