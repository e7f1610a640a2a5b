"""The settings of the bus: its server, who we are there, and what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, field_validator, model_validator

from bus.topology import PARTITIONS
from reactor.settings.part import SettingsPart
from reactor.settings.sources import is_nats


class BusSettings(SettingsPart):
    """The NATS server. Embedded by default: a child process on a free loopback port."""

    url: str | list[str] | None = None
    """`nats://…`, or several; unset: an embedded nats-server."""
    store: Path = Path(".reactor/nats")
    """Embedded only: the folder of its files."""
    server_binary: Path | None = None
    """Embedded only: the nats-server to start. Default: that of the extra `embedded`, else the one on PATH."""
    credentials: Path | None = None
    """A .creds file: JWT and seed, as `nsc` writes them."""
    nkey_seed_file: Path | None = None
    """A file with an nkey's seed."""
    user: str | None = None
    """The user of the NATS server, with password or passwordFile."""
    password: SecretStr | None = None
    """Better in a file: passwordFile."""
    password_file: Path | None = None
    """A file with the password of `user`."""
    inbox_prefix: Annotated[str, Field(pattern=r"^_INBOX[A-Za-z0-9_-]*$", max_length=64)] | None = None
    """Prefix of our inboxes, for the server's permissions. Default: `_INBOX_` and the user; `_INBOX` without one."""
    ca_file: Path | None = None
    """The CA of the server's certificate. Default with `tls://` or `certFile`: the system's."""
    cert_file: Path | None = None
    """Our own certificate, where the server asks for one."""
    key_file: Path | None = None
    """The key of certFile."""
    replicas: Annotated[int, Field(ge=1, le=5)] = 1
    """Copies of each stream: 3 in a cluster."""
    partitions: Annotated[int, Field(ge=1, le=1024)] = PARTITIONS
    """Fixed for good when the streams are first created."""
    max_targets_per_publisher: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    """Most targets of a publisher on the bus that no rule file names as a source. Observations of more are refused and
    counted. A target takes some 15 kB of memory."""
    observations_at_once: Annotated[int, Field(ge=10, le=10_000_000)] = 10_000
    """Observations that each publisher on the bus may send at once, and a twentieth of what comes, while more waits in
    the inbox than a router takes at once. The rest is decided later: what others say does not wait for it, and no
    window does."""

    @field_validator("url")
    @classmethod
    def _nats(cls, url: str | list[str] | None) -> str | list[str] | None:
        if url == []:
            msg = "the list is empty: leave url out for an embedded server"
            raise ValueError(msg)
        for one in [url] if isinstance(url, str) else url or []:
            if not is_nats(one):
                msg = "write nats://HOST:PORT, or a list of them"  # without the value: it may have a password
                raise ValueError(msg)
        return url

    @field_validator("store", "server_binary")
    @classmethod
    def _path(cls, path: Path | None) -> Path | None:
        if path is not None and "\0" in str(path):
            msg = "a path has no NUL character"
            raise ValueError(msg)
        return path

    @model_validator(mode="after")
    def _one_identity(self) -> BusSettings:
        given = {"credentials": self.credentials, "nkeySeedFile": self.nkey_seed_file, "user": self.user}
        if len(named := [name for name, value in given.items() if value]) > 1:
            msg = f"{' and '.join(named)} are given: one of them says who we are"
            raise ValueError(msg)
        if self.password and self.password_file:
            msg = "password and passwordFile are given: keep the file"
            raise ValueError(msg)
        if bool(self.user) != bool(self.password or self.password_file):
            msg = "user goes together with password or passwordFile"
            raise ValueError(msg)
        if bool(self.cert_file) != bool(self.key_file):
            msg = "certFile and keyFile go together"
            raise ValueError(msg)
        return self
