"""Makes the streams, queues and buckets of `bus.topology` on a server, and checks those that are there already.

It may be run at every start. It never makes anything smaller and never deletes: sizes and ages of what exists are the
operator's. What exists and cannot be used (other subjects, another retention) is refused with its name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bus import topology
from bus.errors import WrongServer
from bus.jetstream.bus import JetStreamBus
from bus.jetstream.connection import ApiError, Connection
from bus.topology import DUPLICATE_WINDOW, Bucket, Queue, Stream

NO_STREAM = 10059
NO_CONSUMER = 10014
FIXED = ("subjects", "retention", "storage", "max_msgs_per_subject")
"""What decides how messages are kept. With anything else there the product would lose some."""


async def provision(bus: JetStreamBus, *, replicas: int = 1) -> None:
    """Make what is missing. Raises WrongServer where something is there that cannot be used, and Unavailable."""
    for stream in topology.STREAMS:
        await _stream(bus.connection, _stream_config(stream, replicas))
    for bucket in topology.BUCKETS:
        await _stream(bus.connection, _bucket_config(bucket, replicas))
    for queue in topology.QUEUES:
        await _queue(bus.connection, queue)


async def _stream(connection: Connection, wanted: dict[str, Any]) -> None:
    name = wanted["name"]
    try:
        there = (await connection.api(f"STREAM.INFO.{name}", {}))["config"]
    except ApiError as error:
        if error.code != NO_STREAM:
            raise
        await connection.api(f"STREAM.CREATE.{name}", wanted)
        return
    _refuse_other(name, there, wanted)
    needed = {key: wanted[key] for key in ("discard", "allow_direct", "allow_rollup_hdrs", "allow_msg_ttl")}
    needed["num_replicas"] = max(there["num_replicas"], wanted["num_replicas"])
    needed["duplicate_window"] = max(there.get("duplicate_window", 0), wanted["duplicate_window"])
    if any(there.get(key, False) != value for key, value in needed.items()):
        await connection.api(f"STREAM.UPDATE.{name}", {**there, **needed})


async def _queue(connection: Connection, queue: Queue) -> None:
    wanted = {
        "durable_name": queue.name, "filter_subject": queue.filter, "ack_policy": "explicit", "deliver_policy": "all",
        "replay_policy": "instant", "ack_wait": _ns(queue.ack_wait), "max_deliver": queue.max_deliver,
        "max_ack_pending": queue.max_ack_pending,
    }  # fmt: skip
    try:
        there = (await connection.api(f"CONSUMER.INFO.{queue.stream}.{queue.name}", {}))["config"]
    except ApiError as error:
        if error.code != NO_CONSUMER:
            raise
        there = {}
    if there:
        _refuse_other(f"{queue.stream} > {queue.name}", there, wanted, ("filter_subject", "ack_policy"))
    if {**there, **wanted} != there:
        config = {**there, **wanted}
        await connection.api(
            f"CONSUMER.DURABLE.CREATE.{queue.stream}.{queue.name}", {"stream_name": queue.stream, "config": config}
        )


def _refuse_other(name: str, there: dict[str, Any], wanted: dict[str, Any], keys: tuple[str, ...] = FIXED) -> None:
    for key in keys:
        if _plain(there.get(key)) != _plain(wanted[key]):
            raise WrongServer(
                f"{name} exists with {key} {there.get(key)}, but {wanted[key]} is needed: "
                "nothing was changed; move its data away, delete it, and start again"
            )


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value


def _stream_config(stream: Stream, replicas: int) -> dict[str, Any]:
    return _config(
        stream.name, list(stream.subjects), stream.why, replicas, max_bytes=stream.max_bytes,
        retention=stream.retention, max_age=_ns(stream.max_age),
        # A full work queue refuses, so that what is owed is not lost; a full log forgets its oldest.
        discard="new" if stream.retention == "workqueue" else "old",
        # An owner's new marker takes the place of the one before.
        allow_rollup_hdrs=stream is topology.ACTIONS,
    )  # fmt: skip


def _bucket_config(bucket: Bucket, replicas: int) -> dict[str, Any]:
    return _config(
        f"KV_{bucket.name}", [f"$KV.{bucket.name}.>"], bucket.why, replicas, max_bytes=bucket.max_bytes,
        max_msgs_per_subject=1, discard="new", allow_rollup_hdrs=True, deny_delete=True,
        # The marks of removed keys go away by themselves.
        allow_msg_ttl=True,
    )  # fmt: skip


def _config(name: str, subjects: list[str], why: str, replicas: int, **more: Any) -> dict[str, Any]:
    """Whatever differs from stream to stream is in `more`; the rest is the same for all."""
    return {
        "name": name, "subjects": subjects, "description": f"alert-reactor: {why}", "storage": "file",
        "retention": "limits", "num_replicas": replicas, "max_age": 0, "max_msgs": -1, "max_consumers": -1,
        "max_msg_size": -1, "max_msgs_per_subject": -1, "allow_direct": True, "allow_msg_ttl": False,
        "duplicate_window": _ns(DUPLICATE_WINDOW),
        **more,
    }  # fmt: skip


def _ns(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000
