"""Looking up the newest message of a subject, at the stream's leader: a follower may not have what one just wrote."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime

from bus.errors import Refused
from bus.jetstream.connection import ApiError, Connection
from bus.jetstream.incoming import REMOVED, is_published
from bus.jetstream.pending_publish import PendingPublish

NO_MESSAGE = 10037  # JetStream: no message found
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Last:
    """A subject's newest message; `sequence` 0 where there is none."""

    sequence: int
    body: bytes = b""
    headers: str = ""
    stored_at: datetime = _NEVER
    """Time of storing, by the server's clock."""
    subject: str = ""

    @property
    def removed(self) -> bool:
        """In a bucket: True if the key holds nothing that one of us has written."""
        return not is_published(self.headers) or any(name in self.headers for name in REMOVED)

    def settle(self, post: PendingPublish, refused: Refused) -> int | Refused:
        """Give the sequence where it was our own message that moved the subject on.

        A message whose answer was lost is published again, and a server alone compares the revision before the id
        (measured; a cluster does it the other way round): it refuses what it has stored.
        """
        return self.sequence if f"Nats-Msg-Id: {post.headers['Nats-Msg-Id']}\r\n" in self.headers else refused


async def last(connection: Connection, stream: str, subject: str) -> Last:
    """Raises Unavailable."""
    try:
        answer = await connection.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
    except ApiError as error:
        if error.code == NO_MESSAGE:
            return Last(0)
        raise
    message = answer["message"]
    body, headers = (base64.b64decode(message.get(part, "")) for part in ("data", "hdrs"))
    return Last(message["seq"], body, headers.decode(), datetime.fromisoformat(message["time"]), message["subject"])
