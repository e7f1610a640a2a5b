"""grpc.health.v1 on the wire. The one importer of grpc_health."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

CHECK = "/grpc.health.v1.Health/Check"
_Response = health_pb2.HealthCheckResponse
SERVING: int = _Response.SERVING


def encode_request(service: str) -> bytes:
    """Give a HealthCheckRequest; the empty service asks about the whole server."""
    message: bytes = health_pb2.HealthCheckRequest(service=service).SerializeToString()
    return message


def decode_status(message: bytes) -> int:
    """Give the status of a HealthCheckResponse; 0 (UNKNOWN) where it has none. Raises ValueError."""
    try:
        return int(_Response.FromString(message).status)
    except DecodeError as error:
        raise ValueError(str(error) or "no protobuf message") from error


def status_name(status: int) -> str:
    """Give the enum's name."""
    known = _Response.ServingStatus.values()
    return str(_Response.ServingStatus.Name(status)) if status in known else f"status {status}"
