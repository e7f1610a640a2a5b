"""Links by which people approve: signed, for one plan, once, and for a time. Any process can check and use them.

A link alone gives no access: the person who opens it signs in, and needs the role. It says which request of which rule
is meant. Its secret part is behind the `#` of the address, which browsers send to no server.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from bus import subjects
from bus.errors import KeyNotFound, Refused
from bus.messages import Notify
from bus.port import Store
from reactor.runtime.errors import ReactorError

KEY_BYTES = 32


class LinkUnusable(ReactorError):
    """The link is no link of ours, is too old, or was used."""


@dataclass(frozen=True, slots=True)
class ApprovalLink:
    """Content of a link to approve or reject one plan."""

    id: str
    """Names the notification that it was sent with."""
    rule: str
    object: str
    request: str
    """Fingerprint of the plan: for another plan the link counts for nothing."""
    until: datetime


class ApprovalLinks:
    """Makes links, reads them, and marks them as used. A key is for one day; the bus drops it with its marks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, action: Notify, lasts: timedelta) -> str:
        """Give the part of a link behind `/approve/`, the same for the same action. Raises BusError."""
        until = int((action.decided_at + lasts).timestamp())
        day = f"{action.decided_at.astimezone(UTC):%Y-%m-%d}"
        id_ = hashlib.sha256(action.id.encode()).hexdigest()[:24]
        body = json.dumps([id_, action.rule, action.object, action.request, until], separators=(",", ":")).encode()
        return f"{day}.{_text(body)}.{_text(_signature(await self._key(day), day, body))}"

    async def read(self, token: str, now: datetime) -> ApprovalLink:
        """Give what a link is about. Raises LinkUnusable, BusError."""
        try:
            day, body_text, signature = token.split(".")
            body, given = _bytes(body_text), _bytes(signature)
            key = (await self._store.get(_key_of(date.fromisoformat(day).isoformat()))).value
        except (ValueError, binascii.Error, KeyNotFound):
            raise LinkUnusable("this link is incomplete, or too old") from None
        if not hmac.compare_digest(given, _signature(key, day, body)):
            raise LinkUnusable("this link was not made by this reactor")
        id_, rule, object_, request, until = json.loads(body)
        link = ApprovalLink(id_, rule, object_, request, datetime.fromtimestamp(until, UTC))
        if now >= link.until:
            raise LinkUnusable("the time of this link is over")
        return link

    async def used(self, link: ApprovalLink) -> str:
        """Give by whom and how the link was used; empty: it was not. Raises BusError."""
        try:
            return (await self._store.get(_mark_of(link))).value.decode("utf-8", "replace")
        except KeyNotFound:
            return ""

    async def use(self, link: ApprovalLink, words: str) -> int:
        """Mark it as used, so that it is used once whichever process is asked. Gives the mark's revision.

        Raises LinkUnusable, BusError.
        """
        try:
            return await self._store.put(_mark_of(link), words.encode(), revision=0)
        except Refused:
            raise LinkUnusable("this link was used already") from None

    async def give_back(self, link: ApprovalLink, revision: int) -> None:
        """Take the mark away again: what the link was used for was not done. Raises BusError."""
        await self._store.delete(_mark_of(link), revision=revision)

    async def _key(self, day: str) -> bytes:
        """Give the key of a day. The first process that needs it makes it."""
        for _ in range(2):
            try:
                return (await self._store.get(_key_of(day))).value
            except KeyNotFound:
                pass
            made = secrets.token_bytes(KEY_BYTES)
            try:
                await self._store.put(_key_of(day), made, revision=0)
            except Refused:
                continue  # another process was faster
            return made
        return (await self._store.get(_key_of(day))).value


def _key_of(day: str) -> str:
    return subjects.key("key", day)


def _mark_of(link: ApprovalLink) -> str:
    return subjects.key("used", link.id)


def _signature(key: bytes, day: str, body: bytes) -> bytes:
    return hmac.new(key, day.encode() + b"\0" + body, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
