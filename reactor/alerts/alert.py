"""One alert as Alertmanager posts it, and the limits within which we believe it. Pure: no clock, no IO.

An alert that breaks a limit is refused alone (BadAlert), never with the body it came in: Alertmanager would send the
same group again and again, and its good alerts would never arrive.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import to_json

LABELS_MAX = 64  # Prometheus and Mimir advise 30; a few more are appended by relabelling
ANNOTATIONS_MAX = 64
VALUE_CHARS_MAX = 4096  # what an observation's labels may hold
ALERT_BYTES_MAX = 256 << 10  # two fit in one journal chunk, so that every alert fits in one
_DATE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]")
_FINGERPRINT = re.compile(r"[0-9A-Za-z_-]{1,64}\Z")


class BadAlert(ValueError):
    """The alert cannot be used: says which key and why, without repeating what it held."""


def _moment(value: object) -> object:
    """Refuse numbers and numeric texts as times, and read Go's zero time as None: that is how `firing` says no end."""
    if value is None or isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _DATE.match(value):
        msg = "is no RFC 3339 time"
        raise ValueError(msg)
    return None if value.startswith("0001-01-01") else value


def _printable(value: object) -> object:
    """Refuse NUL: JSON may carry it, few who read a label later expect it."""
    if isinstance(value, str) and "\0" in value:
        msg = "holds NUL"
        raise ValueError(msg)
    return value


def _cut(value: object) -> object:
    """Keep the first annotations, each cut to a length: they are for people, an alert is not lost for a long one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return value
    kept = list(value.items())[:ANNOTATIONS_MAX]
    return {name: text.replace("\0", "")[:VALUE_CHARS_MAX] for name, text in kept if isinstance(text, str)}


def _link(value: object) -> str:
    """Keep a link of a sane length; an alert is not lost for one that is none."""
    return value if isinstance(value, str) and len(value) <= VALUE_CHARS_MAX and "\0" not in value else ""


Moment = Annotated[AwareDatetime | None, BeforeValidator(_moment)]
LabelName = Annotated[str, StringConstraints(min_length=1, max_length=256), BeforeValidator(_printable)]
LabelValue = Annotated[str, StringConstraints(max_length=VALUE_CHARS_MAX), BeforeValidator(_printable)]


class Alert(BaseModel):
    """One alert of a post, or of Alertmanager's API. Keys that we do not know are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_by_name=True, serialize_by_alias=True)

    status: Literal["firing", "resolved"]
    """Its own. The group's status says nothing about one alert: `firing` is said of a group if any alert fires."""
    labels: Annotated[dict[LabelName, LabelValue], Field(min_length=1, max_length=LABELS_MAX)]
    annotations: Annotated[dict[str, str], BeforeValidator(_cut)] = {}
    starts_at: Moment = Field(default=None, alias="startsAt")
    """Start by Prometheus' clock. May move back when a second Prometheus reports an earlier start, so it is no
    identity."""
    ends_at: Moment = Field(default=None, alias="endsAt")
    """End by Prometheus' clock; None while it fires."""
    fingerprint: str = ""
    """A hash of the labels; with the source, the alert's identity."""
    generator_url: Annotated[str, BeforeValidator(_link)] = Field(default="", alias="generatorURL")
    updated_at: Moment = Field(default=None, alias="updatedAt", exclude=True)
    """API only: when Alertmanager last sent it."""

    @model_validator(mode="before")
    @classmethod
    def _identified(cls, value: Any) -> Any:
        """Give a fingerprint to an alert that has none we could use."""
        if not isinstance(value, Mapping):
            return value
        given, labels = value.get("fingerprint"), value.get("labels")
        if (isinstance(given, str) and _FINGERPRINT.match(given)) or not isinstance(labels, Mapping):
            return value
        return {**value, "fingerprint": fingerprint_of(labels)}

    @classmethod
    def read(cls, raw: object) -> Self:
        """Give the alert. Raises BadAlert."""
        try:
            alert = cls.model_validate(raw)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            key = str(first["loc"][0]) if first["loc"] else "alert"
            raise BadAlert(f"{key}: {first['msg']}") from None  # its text could repeat a whole label
        return alert

    def journal(self) -> bytes:
        """Give the alert as it is journaled, as JSON. Raises BadAlert where it is too large."""
        text = to_json(self.model_dump(mode="json"))
        if len(text) > ALERT_BYTES_MAX:
            raise BadAlert(f"alert: {len(text)} bytes, at most {ALERT_BYTES_MAX} are taken")
        return text

    @property
    def detail(self) -> str:
        """One line for people."""
        said = (
            self.annotations.get("summary") or self.annotations.get("description") or self.labels.get("alertname", "")
        )
        return " ".join(said.split())[:500]


def fingerprint_of(labels: Mapping[Any, Any]) -> str:
    """Give 16 hex digits of the labels' SHA-256, sorted: for senders that leave the fingerprint out."""
    text = "\0".join(f"{name}\1{labels[name]}" for name in sorted(labels, key=str))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def from_api(raw: Mapping[str, Any]) -> tuple[Alert, bool]:
    """Read one alert of GET /api/v2/alerts: it fires there; and whether it is not silenced, inhibited or muted.

    Raises BadAlert. The `status` of the API is an object and its `endsAt` is when it would end without news.
    """
    status = raw.get("status")
    active = isinstance(status, Mapping) and status.get("state") == "active" and not status.get("mutedBy")
    return Alert.read({**raw, "status": "firing", "endsAt": None}), active
