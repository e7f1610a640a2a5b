"""Messages to publish: one with its headers, many as one batch, and more than a round takes in several rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bus.jetstream.batch_choice import BATCH_MIN

ROUND_MESSAGES_MAX = 512  # well below the 10,000 that a stream queues before it answers "too many requests"
ROUND_BYTES_MAX = 1 << 20  # below nats-py's buffer of 2 MiB, so that a round reaches the socket in one piece
HEADERS_BYTES = 512  # of a message's subject and headers, at most
BATCH, BATCH_SEQUENCE, BATCH_COMMIT = "Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit"
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
FENCED = f"{EXPECTED}-Subject"
BATCH_NAME_MAX = 64  # the server takes no longer one


class PendingPublish(NamedTuple):
    """One message with its headers, Nats-Msg-Id among them. A tuple: one costs a third of what a dataclass does."""

    subject: str
    body: bytes
    headers: Mapping[str, str]


def may_be_batch(posts: Sequence[PendingPublish]) -> bool:
    """True if they may be one batch, and are so many that it pays. Only the first may name what another subject has."""
    return (
        len(posts) >= BATCH_MIN
        and len({root_of(post) for post in posts}) == 1
        and not any(FENCED in post.headers for post in posts)
    )


def as_batch(posts: Sequence[PendingPublish], name: str) -> Sequence[PendingPublish]:
    """The same messages as one batch of this name, which the last one commits."""
    id_ = name[-BATCH_NAME_MAX:]
    batch = [
        PendingPublish(post.subject, post.body, {**post.headers, BATCH: id_, BATCH_SEQUENCE: str(number)})
        for number, post in enumerate(posts, 1)
    ]
    batch[-1] = batch[-1]._replace(headers={**batch[-1].headers, BATCH_COMMIT: "1"})
    return batch


def root_of(post: PendingPublish) -> str:
    """Give the beginning of the subject by which a stream is told from others."""
    return ".".join(post.subject.split(".")[:2])


def fit_in_round(posts: Sequence[PendingPublish]) -> bool:
    """True if one round takes them all."""
    size = sum(len(post.body) + HEADERS_BYTES for post in posts)
    return len(posts) <= ROUND_MESSAGES_MAX and size <= ROUND_BYTES_MAX


def chunks(posts: Sequence[PendingPublish]) -> Iterator[Sequence[PendingPublish]]:
    """Give them in rounds, each of so many messages and bytes at most."""
    start = size = 0
    for index, post in enumerate(posts):
        size += len(post.body) + HEADERS_BYTES
        if index > start and (size > ROUND_BYTES_MAX or index - start >= ROUND_MESSAGES_MAX):
            yield posts[start:index]
            start, size = index, len(post.body) + HEADERS_BYTES
    if start < len(posts):
        yield posts[start:]
