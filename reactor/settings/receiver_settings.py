"""The settings of the two HTTP servers that others call: for webhooks, and for health and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from reactor.settings.listeners import Listener, is_loopback, parted


class HealthSettings(Listener):
    """The HTTP server for /livez, /readyz and /metrics alone: trouble at the receiver does not reach it."""

    listen: str | None = None
    """host:port. Default: the receiver's host, and the port after the receiver's; a free one where that is 0."""
    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Most connections, as for the receiver."""
    max_connections_per_peer: Annotated[int, Field(ge=1, le=100_000)] = 50
    """The same for those of one address."""

    @field_validator("listen")
    @classmethod
    def _address(cls, listen: str | None) -> str | None:
        if listen is not None:
            parted(listen)
        return listen


class Receiver(Listener):
    """The HTTP server for webhooks. It answers for health and metrics too."""

    listen: str = "127.0.0.1:8484"
    """host:port; port 0 takes a free one."""
    bearer_token_files: tuple[Path, ...] = ()
    """Any of these tokens is accepted: two at once allow rotation. Read again when they change."""
    basic_user: str | None = None
    """Basic authentication: the user, with basicPasswordFile."""
    basic_password_file: Path | None = None
    """A file with the password of basicUser."""
    tls_cert_file: Path | None = None
    """Certificate with which the listener serves TLS, together with tlsKeyFile. Read again when it changes."""
    tls_key_file: Path | None = None
    """The key of tlsCertFile."""
    client_ca_file: Path | None = None
    """CA of client certificates: only clients with one of this CA may post."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=256 << 20)] = 32 << 20
    """5,000 alerts in one group are 3 MB, 20,000 are 12 MB (measured)."""
    max_alerts_per_post: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    """A post with more alerts is answered 413."""
    body_seconds: Annotated[float, Field(gt=0, le=300)] = 10
    """Seconds for a body to come in. Alertmanager waits for `group_interval`, at least 10 s."""
    posts_at_once: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Taken at once; further ones are answered 503, and come again."""
    posts_of_a_source: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Most of these for one source, so that it leaves room for others."""
    alerts_per_second: Annotated[int, Field(ge=100, le=1_000_000)] = 2_000
    """Alerts a second of each source, beyond alertsAtOnce: a post with more is answered when all of it is stored."""
    alerts_at_once: Annotated[int, Field(ge=1, le=1_000_000)] = 5_000
    """Alerts of each source that are stored at once after a silence: one large group of Alertmanager's."""

    @property
    def host(self) -> str:
        """The host part of `listen`."""
        return parted(self.listen)[0]

    @property
    def port(self) -> int:
        """The port part of `listen`."""
        return parted(self.listen)[1]

    @property
    def authenticated(self) -> bool:
        """True if a client has to show who it is."""
        return bool(self.bearer_token_files or self.basic_user or self.client_ca_file)

    @model_validator(mode="after")
    def _closed_to_strangers(self) -> Receiver:
        parted(self.listen)
        if bool(self.basic_user) != bool(self.basic_password_file):
            msg = "basicUser and basicPasswordFile go together"
            raise ValueError(msg)
        if bool(self.tls_cert_file) != bool(self.tls_key_file) or (self.client_ca_file and not self.tls_cert_file):
            msg = "tlsCertFile and tlsKeyFile go together, and clientCaFile needs both"
            raise ValueError(msg)
        if not self.authenticated and not is_loopback(self.host):
            msg = (
                f"listen: {self.listen} is open to other machines: set bearerTokenFiles, basicUser or clientCaFile, "
                "or listen on 127.0.0.1"
            )
            raise ValueError(msg)
        return self
