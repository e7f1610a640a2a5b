"""The page and its API: where they listen, by which names, and who may look, approve and operate."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated

from pydantic import Field, HttpUrl, field_validator, model_validator

from reactor.settings.listeners import Listener, is_loopback, parted
from reactor.settings.part import SettingsPart


class WebRole(StrEnum):
    """Permission of a user of the page. Each role includes the ones before it."""

    VIEW = "view"
    APPROVE = "approve"
    OPERATE = "operate"

    def includes(self, other: WebRole) -> bool:
        """True if this role may do what the other one may."""
        order = list(WebRole)
        return order.index(self) >= order.index(other)


class WebUser(SettingsPart):
    """A person, or a program, with a token."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]*$")]
    """Recorded in the audit as who approved or paused."""
    role: WebRole = WebRole.VIEW
    """view: read only. approve: also approve and reject. operate: also pause and resume."""
    token_file: Path
    """A file with the token: 16 characters or more. Read again when it changes."""


class WebGrant(SettingsPart):
    """Role of people whom a proxy or a cluster names."""

    role: WebRole
    """view, approve or operate, as for `users`."""
    users: tuple[str, ...] = ()
    """Names of people, as the proxy or the cluster gives them."""
    groups: tuple[str, ...] = ()
    """Names of groups: all of their members."""


class WebProxy(SettingsPart):
    """A proxy that signs people in (OIDC), and says in a header who asks. Its header counts from its addresses only."""

    addresses: Annotated[tuple[IPv4Network | IPv6Network, ...], Field(min_length=1)]
    """Addresses that its requests come from: `10.1.2.3/32`."""
    user_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Forwarded-User"
    """The header with the name of who asks."""
    groups_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Forwarded-Groups"
    """Groups, parted by commas."""


class WebTokenReview(SettingsPart):
    """Bearer tokens that a Kubernetes API server knows, such as those of `kubectl create token`."""

    cluster: str
    """A cluster of the settings, whose API server is asked. The reactor needs `create` on `tokenreviews` there."""
    audiences: tuple[str, ...] = ()
    """Audiences of which a token needs one; default: the API server."""


class Web(Listener):
    """The HTTP server of the page and the API, run by the role `web`."""

    listen: str = "127.0.0.1:8490"
    """host:port; port 0 takes a free one."""
    url: HttpUrl | None = None
    """URL of the page in browsers, where that is not `listen`: behind a proxy, `https://reactor.example.org`."""
    allowed_hosts: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9.:\[\]-]+$", max_length=260)], ...] = ()
    """More values of the Host header that are answered: `name`, or `name:port`. A name alone allows each port."""
    users: tuple[WebUser, ...] = ()
    """Users with a token of their own. Without any, each client on this machine may read, and none may change
    anything."""
    proxy: WebProxy | None = None
    """Signs people in by OIDC, in front of the page."""
    token_review: WebTokenReview | None = None
    """Lets Kubernetes say whose a token is."""
    grants: tuple[WebGrant, ...] = ()
    """Roles of people whom `proxy` or `tokenReview` names. A person in several has the highest role, in none: none."""
    link_seconds: Annotated[float, Field(ge=60, le=604_800)] = 86_400
    """Seconds for which a link in a notification can approve or reject its action. Links need `url`."""
    session_seconds: Annotated[float, Field(ge=60, le=604_800)] = 43_200
    """Seconds for which a browser stays signed in."""
    viewers_max: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Most pages that may follow live updates of one process at once."""
    backtests: Path | None = None
    """A folder with pages that `reactor backtest --html` wrote. Who may view may read them, and a rule's page links
    to those that have the rule."""
    tls_cert_file: Path | None = None
    """Certificate with which the page is served with TLS, together with tlsKeyFile. Read again when it changes."""
    tls_key_file: Path | None = None
    """The key of tlsCertFile."""

    @field_validator("users")
    @classmethod
    def _once(cls, users: tuple[WebUser, ...]) -> tuple[WebUser, ...]:
        names = [user.name for user in users]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            msg = f"{twice[0]} is given twice"
            raise ValueError(msg)
        return users

    @property
    def host(self) -> str:
        """The host part of `listen`."""
        return parted(self.listen)[0]

    @property
    def port(self) -> int:
        """The port part of `listen`."""
        return parted(self.listen)[1]

    @model_validator(mode="after")
    def _closed_to_strangers(self) -> Web:
        parted(self.listen)
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            msg = "tlsCertFile and tlsKeyFile go together"
            raise ValueError(msg)
        if is_loopback(self.host):
            return self
        if not (self.users or self.proxy or self.token_review):
            msg = f"listen: {self.listen} is open to other machines: set users, or listen on 127.0.0.1"
            raise ValueError(msg)
        if self.url is None and not self.allowed_hosts:
            msg = f"listen: {self.listen} is open to other machines: set url, or allowedHosts, to the page's host names"
            raise ValueError(msg)
        return self
