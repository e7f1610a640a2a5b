"""grpc.health.v1, byte for byte."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.sources.probes.health_v1 import decode_status, encode_request, status_name


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("", b""),
        ("shop.Cart", b"\x0a\x09shop.Cart"),
        ("x" * 200, b"\x0a\xc8\x01" + b"x" * 200),
        ("é", b"\x0a\x02\xc3\xa9"),
    ],
)
def test_a_request_is_what_protoc_would_write(service: str, message: bytes) -> None:
    assert encode_request(service) == message


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (b"", "UNKNOWN"),
        (b"\x08\x01", "SERVING"),
        (b"\x08\x02", "NOT_SERVING"),
        (b"\x08\x03", "SERVICE_UNKNOWN"),
        (b"\x08\x63", "status 99"),
        (b"\x12\x03abc\x08\x01", "SERVING"),  # a field that is new to us comes before it
        (b"\x08\x02\x08\x01", "SERVING"),  # the last one counts
        (b"\x19" + b"\0" * 8 + b"\x15" + b"\0" * 4 + b"\x08\x01", "SERVING"),
    ],
)
def test_a_status_is_read_whatever_is_around_it(message: bytes, name: str) -> None:
    assert status_name(decode_status(message)) == name


@pytest.mark.parametrize("message", [b"\x08", b"\x08\xff", b"\x12\x05ab", b"\x0b", b"\xff" * 11, b"\x19\0"])
def test_half_a_message_is_none(message: bytes) -> None:
    with pytest.raises(ValueError, match="parsing"):
        decode_status(message)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_status_or_refused(message: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert decode_status(message) >= 0
