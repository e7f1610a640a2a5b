"""grpc.health.v1 on the wire, by hand: two messages of one field each are not worth a protobuf runtime.

message HealthCheckRequest  { string service = 1; }
message HealthCheckResponse { ServingStatus status = 1; }   // an enum, so a varint
"""

from __future__ import annotations

CHECK = "/grpc.health.v1.Health/Check"
SERVING = 1
_NAMES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10


def encode_request(service: str) -> bytes:
    """Give a HealthCheckRequest; the empty service asks about the whole server."""
    text = service.encode()
    return b"\x0a" + _varint(len(text)) + text if text else b""  # 0x0a: field 1, length-delimited


def decode_status(message: bytes) -> int:
    """Give the status of a HealthCheckResponse; 0 (UNKNOWN) where it has none. Raises ValueError."""
    status, at = 0, 0
    while at < len(message):
        key, at = _read_varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            if field == 1:
                status = value
        elif kind == _BYTES:
            length, at = _read_varint(message, at)
            at += length
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
    if at > len(message):
        raise ValueError("it ends in the middle of a field")
    return status


def status_name(status: int) -> str:
    """Give the enum's name."""
    return _NAMES[status] if status < len(_NAMES) else f"status {status}"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(message[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number does not end")
