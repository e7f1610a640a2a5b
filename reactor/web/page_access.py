"""Access control of the page: tokens, sessions, host names, origins.

A session is a signed cookie. Its key is the token itself, so that each process can check it, and a new token ends all
sessions of the old one. What changes something needs a second secret in a header, which no other site can read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from reactor.runtime.errors import ReactorError, SettingsError
from reactor.settings.web_settings import Web, WebRole, WebUser
from reactor.webhook.auth import SecretFile

COOKIE = "reactor_session"
CSRF = "X-CSRF-Token"
TOKEN_MIN = 16
NAME_MAX = 200
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is listened on is the settings' choice


class Denied(ReactorError):
    """A request that is not answered."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        """The HTTP status."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Client of a request."""

    name: str
    """Name of the person; empty: no person has signed in, nor needs to."""
    role: WebRole
    csrf: str = ""
    """Secret that a request that changes something has to bring along; empty: it came with its token."""


class Access:
    """Decides for each request who asks, and what that person may do."""

    def __init__(self, settings: Web) -> None:
        """Raises SettingsError where a token is missing or too short."""
        self._settings = settings
        self._users: Mapping[str, tuple[WebUser, SecretFile]] = {
            user.name: (user, _token(user.token_file)) for user in settings.users
        }
        public = urlsplit(str(settings.url)).netloc if settings.url is not None else ""
        names = {host.lower() for host in settings.allowed_hosts} | {public.lower()} - {""}
        own = settings.host.lower()
        if own not in ANYWHERE:
            names |= {f"[{own}]" if ":" in own else own, *LOOPBACK}
        self._hosts = frozenset(names)

    @property
    def open(self) -> bool:
        """True if any client on this machine may look, without a token."""
        return not (self._users or self._settings.proxy or self._settings.token_review)

    @property
    def secure(self) -> bool:
        """True if browsers reach the page by https, so that a cookie goes nowhere else."""
        return self._settings.tls_cert_file is not None or (
            self._settings.url is not None and self._settings.url.scheme == "https"
        )

    def check_host(self, host: str | None) -> None:
        """Raises Denied where a page of another name is meant: a foreign site may make its name point here."""
        name = (host or "").lower()
        if name not in self._hosts and _without_port(name) not in self._hosts:
            raise Denied(421, "this host name is not among the page's: add it to web.allowedHosts")

    def viewer(self, headers: Mapping[str, str], cookie: str | None, now: float) -> Viewer:
        """Give who asks. `now`: seconds since 1970. Raises Denied where that has to be known and is not."""
        scheme, _, token = headers.get("Authorization", "").strip().partition(" ")
        if scheme.lower() == "bearer":
            return self.by_token(token.strip())
        if self.open:
            return Viewer("", WebRole.VIEW)
        found = self._by_cookie(cookie or "", now)
        if found is None:
            raise Denied(401, "sign in first")
        return found

    def by_proxy(self, headers: Mapping[str, str], peer: str | None) -> Viewer | None:
        """Give whom a trusted proxy names; None: it is not the proxy that asks. Raises Denied."""
        proxy = self._settings.proxy
        if (
            proxy is None
            or not _is_in(peer, proxy.addresses)
            or not (name := headers.get(proxy.user_header, "").strip())
        ):
            return None
        groups = [one.strip() for one in headers.get(proxy.groups_header, "").split(",")]
        # The proxy's cookie is in each request of the browser. Other sites cannot send this header without being asked.
        return self.granted(name, groups, csrf="proxy")

    def granted(self, name: str, groups: Iterable[str], csrf: str = "") -> Viewer:
        """Give what a person may do whom a proxy or a cluster names. Raises Denied."""
        mine = {*groups}
        roles = [one.role for one in self._settings.grants if name in one.users or mine & {*one.groups}]
        if not roles or len(name) > NAME_MAX or not name.isprintable():
            raise Denied(403, "you are signed in, but web.grants gives you no role")
        return Viewer(name, max(roles, key=[*WebRole].index), csrf)

    def by_token(self, token: str) -> Viewer:
        """Give whose token this is. Raises Denied."""
        given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        # All are compared, whichever fits: the time taken tells nothing.
        found = [user for user, file in self._users.values() if hmac.compare_digest(given, file.digest())]
        if not found:
            raise Denied(401, "this token is not known")
        return Viewer(found[0].name, found[0].role)

    def session(self, viewer: Viewer, now: float) -> str:
        """Give the value of a cookie for this person."""
        body = f"{viewer.name}|{int(now + self._settings.session_seconds)}"
        return base64.urlsafe_b64encode(f"{body}|{self._sign(viewer.name, 'session', body)}".encode()).decode()

    def _by_cookie(self, cookie: str, now: float) -> Viewer | None:
        try:
            name, until, signature = base64.urlsafe_b64decode(cookie.encode()).decode().split("|")
            ends = int(until)
        except (binascii.Error, ValueError):
            return None
        if name not in self._users or not hmac.compare_digest(
            signature.encode(), self._sign(name, "session", f"{name}|{until}").encode()
        ):
            return None
        return Viewer(name, self._users[name][0].role, self._sign(name, "csrf", cookie)) if now < ends else None

    def _sign(self, name: str, use: str, text: str) -> str:
        key = self._users[name][1].digest()
        return hmac.new(key, f"{use}\0{text}".encode(), hashlib.sha256).hexdigest()

    def check_write(self, viewer: Viewer, headers: Mapping[str, str], needed: WebRole) -> None:
        """Raises Denied where this person may not, or the request may come from another site."""
        self.check_origin(headers)
        if viewer.csrf and not hmac.compare_digest(
            headers.get(CSRF, "").encode("utf-8", "surrogateescape"), viewer.csrf.encode()
        ):
            raise Denied(403, f"the header {CSRF} is missing or wrong: load the page again")
        if not viewer.name:
            raise Denied(403, "this page is read-only: set web.users to approve and pause here")
        if not viewer.role.includes(needed):
            raise Denied(403, f"this needs the role {needed}; {viewer.name} has {viewer.role}")

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raises Denied where a browser says that another site asks, or does not say which one does."""
        origin = headers.get("Origin")
        bearer = headers.get("Authorization", "").lower().startswith("bearer ")
        if origin is None and bearer:
            return  # no browser: none sends such a header by itself
        if origin is None or urlsplit(origin).netloc.lower() != headers.get("Host", "").lower():
            raise Denied(403, "the request comes from another site: its Origin is not this page's")
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise Denied(403, "the request comes from another site")


def _is_in(peer: str | None, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    try:
        address = ip_address(peer or "")
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return any((mapped or address) in network for network in networks)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _token(path: Path) -> SecretFile:
    found = SecretFile(path)
    if len(path.read_text("utf-8").strip()) < TOKEN_MIN:
        raise SettingsError(f"{path}: a token has {TOKEN_MIN} characters or more")
    return found
