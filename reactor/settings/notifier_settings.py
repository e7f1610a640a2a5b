"""The settings of a notifier: where people are told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import HttpUrl, SecretStr, model_validator

from reactor.settings.email import Email
from reactor.settings.part import SettingsPart


class Notifier(SettingsPart):
    """Notifier of people."""

    kind: Literal["webhook", "slack", "pagerduty", "opsgenie", "alertmanager", "email", "log"] = "log"
    """Kind of receiver. log: a line in the log of the reactor, and no more."""
    url: SecretStr | None = None
    """webhook, slack: all of it. alertmanager: without /api/v2/alerts. pagerduty, opsgenie: where it is another than
    the usual one, as in Europe."""
    url_file: Path | None = None
    """A file with the url. Read again for each message."""
    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there."""
    key: SecretStr | None = None
    """pagerduty: the integration's routing key (Events API v2). opsgenie: the API integration's key."""
    key_file: Path | None = None
    """A file with the key. Read again for each message."""
    email: Email | None = None
    """email: the server that takes it, and the addresses."""

    @model_validator(mode="after")
    def _has_address(self) -> Notifier:
        if (self.kind == "email") != (self.email is not None):
            msg = "kind email goes together with email: {host, from, to}"
            raise ValueError(msg)
        if self.email is not None and (self.url or self.url_file or self.proxy_url):
            msg = "kind email takes no url and no proxyUrl: its server is email.host"
            raise ValueError(msg)
        keyed = self.kind in ("pagerduty", "opsgenie")
        if self.kind not in ("log", "email") and not keyed and not (self.url or self.url_file):
            msg = f"kind {self.kind} needs url or urlFile"
            raise ValueError(msg)
        if keyed and not (self.key or self.key_file):
            msg = f"kind {self.kind} needs key or keyFile"
            raise ValueError(msg)
        if not keyed and (self.key or self.key_file):
            msg = f"kind {self.kind} takes no key"
            raise ValueError(msg)
        return self
