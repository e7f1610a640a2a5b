"""Settings of a notifier of kind email: its mail server, sender and recipients."""

from __future__ import annotations

import ipaddress
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from reactor.settings.part import SettingsPart

PORTS = {"StartTls": 587, "Implicit": 465, "None": 25}


class Email(SettingsPart):
    """An SMTP server that takes mails in, and the addresses."""

    host: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:_-]+$")]
    """The SMTP server."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Port of the server. Default: 587, with `tls: Implicit` 465, with `tls: None` 25."""
    tls: Literal["StartTls", "Implicit", "None"] = "StartTls"
    """StartTls: a server that does not offer it gets no mail. Implicit: TLS from the first byte."""
    ca_file: Path | None = None
    """The CA of the server's certificate. Default: the system's."""
    user: str | None = None
    """User name with which the reactor logs in; null: it does not."""
    password_file: Path | None = None
    """A file with the password of `user`."""
    sender: Annotated[str, Field(alias="from", max_length=320)]
    """`reactor@example.com`, or `Alert reactor <reactor@example.com>`."""
    to: Annotated[tuple[Annotated[str, Field(max_length=320)], ...], Field(min_length=1, max_length=50)]
    """Addresses of the recipients: each gets each mail."""

    @property
    def server_port(self) -> int:
        """The port that counts."""
        return self.port or PORTS[self.tls]

    @field_validator("sender")
    @classmethod
    def _from(cls, sender: str) -> str:
        address_of(sender)
        return sender

    @field_validator("to")
    @classmethod
    def _to(cls, to: tuple[str, ...]) -> tuple[str, ...]:
        for one in to:
            address_of(one)
        return to

    @model_validator(mode="after")
    def _safe(self) -> Email:
        if bool(self.user) != bool(self.password_file):
            msg = "user and passwordFile go together"
            raise ValueError(msg)
        if self.user and self.tls == "None" and not _loopback(self.host):
            msg = "tls: None sends the password unencrypted: StartTls or Implicit, or no user"
            raise ValueError(msg)
        return self


def address_of(text: str) -> str:
    """Give the bare address of `Name <a@b>`. Raises ValueError where it is no single address in ASCII."""
    made = EmailMessage(policy=policy.SMTP)
    try:
        made["To"] = text  # refuses line breaks
        found = made["To"].addresses
    except (ValueError, IndexError) as error:
        msg = f"{text!r} is no address: {error}"
        raise ValueError(msg) from error
    if not text.isascii():
        msg = f"{text!r}: an address outside of ASCII is not taken by every server: use its ASCII form"
        raise ValueError(msg)
    if len(found) != 1 or made["To"].defects or not (found[0].username and found[0].domain):
        msg = f"{text!r} is not one address such as ann@example.com"
        raise ValueError(msg)
    return str(found[0].addr_spec)


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
