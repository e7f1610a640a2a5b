"""Reads the body of a post. Pure.

What cannot be a body of Alertmanager's is refused as a whole; what is wrong with one alert costs that alert only.
Keys that we do not know are left alone: each release of Alertmanager adds some. Of a key given twice the last counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from reactor.alerts.alert import Alert, BadAlert

ALERTS_MAX = 100_000
"""Most alerts of a body if nothing else is given: a body of 32 MiB holds 55,000 real ones, or ten million empty
ones."""


class BadBody(ValueError):
    """The body cannot be used. `code` is the answer: the sender need not try again."""

    def __init__(self, code: int, message: str, *, limit: str = "") -> None:
        """`limit`: which one it exceeds, if any."""
        super().__init__(message)
        self.code = code
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Body:
    """Content of a body."""

    digest: str
    """SHA-256 of all its bytes, in hex."""
    alerts: list[bytes] = field(repr=False)
    """Usable alerts, as JSON: as objects, all at once, they would take several times as much memory."""
    quarantined: list[str]
    """Reason for each alert that cannot be used."""
    truncated: int
    """Number of alerts that Alertmanager left out (max_alerts)."""


class _WebhookBody(BaseModel):
    """The top of the body. The group's status and keys are ignored: they say nothing about one alert."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)

    version: str | None = None
    alerts: list[Any] | None = None
    truncated_alerts: Annotated[int, Field(ge=0)] | None = None


def read_body(raw: bytes, *, alerts_max: int = ALERTS_MAX) -> Body:
    """Read a body. Raises BadBody: 400 for what is no JSON, 422 for what is no webhook, 413 for too many alerts."""
    post = _top(raw)
    if len(post.alerts or ()) > alerts_max:
        raise BadBody(413, f"alerts: at most {alerts_max} in one body", limit="maxAlertsPerPost")
    if post.version not in (None, "4"):
        raise BadBody(422, f"version {post.version[:20]!r} of the webhook is not known: this is for Alertmanager's 4")
    alerts, quarantined = [], []
    left = (post.alerts or [])[::-1]
    post.alerts = None
    while left:
        try:
            # Popped, so that no alert is in memory as an object once it is text.
            alerts.append(Alert.read(left.pop()).journal())
        except BadAlert as error:
            quarantined.append(str(error))
    return Body(hashlib.sha256(raw).hexdigest(), alerts, quarantined, post.truncated_alerts or 0)


def _top(raw: bytes) -> _WebhookBody:
    try:
        # Not model_validate_json: it holds everything twice, and a body of 32 MiB would not fit into its process.
        read = from_json(raw)
    except ValueError as error:
        text = f"Invalid JSON: {error}"
        raise BadBody(400, text, limit="depth" if "recursion limit" in text else "") from None
    try:
        return _WebhookBody.model_validate(read)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"][:1])) or "body"
    raise BadBody(422, f"not the body of Alertmanager's webhook: {where}: {first['msg']}")
