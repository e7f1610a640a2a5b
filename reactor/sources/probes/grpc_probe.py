"""GrpcProbe: grpc.health.v1.Health/Check.

    - name: cart-grpc
      kind: GrpcProbe
      target: service/east/shop/cart
      host: cart.east.example
      port: 50051
      service: shop.Cart       # default: the server as a whole

A try succeeds when the answer is SERVING. NOT_SERVING, an unknown service, and a server without the health service
fail.
"""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

import grpc

from reactor.sources.probes.addresses import first_open
from reactor.sources.probes.health_v1 import CHECK, SERVING, decode_status, encode_request, status_name
from reactor.sources.probes.probing import TryFailed, probe
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import GrpcProbe


async def run(source: GrpcProbe, world: SourceContext) -> None:
    """Probe until cancelled."""

    async def attempt() -> str:
        return await _tried(source)

    await probe(source, world, attempt)


async def _tried(source: GrpcProbe) -> str:
    try:
        address = await first_open(source.host, source.port)
    except OSError as error:
        raise TryFailed(f"{source.host}: {error}") from error
    # A new channel for each try: a lasting one would wait up to two minutes before it connects again after a failure.
    async with _channel(source, address) as channel:
        check = channel.unary_unary(CHECK)
        try:
            answer = await check(encode_request(source.service), timeout=source.timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise TryFailed(f"{error.code().name}: {error.details()}") from error
    try:
        status = decode_status(answer)
    except ValueError as error:
        raise TryFailed(f"the answer is no HealthCheckResponse: {error}") from error
    if status != SERVING:
        raise TryFailed(status_name(status))
    return status_name(status)


def _channel(source: GrpcProbe, address: str) -> grpc.aio.Channel:
    where = f"ipv6:[{address}]:{source.port}" if ":" in address else f"ipv4:{address}:{source.port}"
    name = f"[{source.host}]" if ":" in source.host else source.host
    options = [
        # By default, channels to the same address share connections and their backoff, also across sources.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        # We connect to the address that was checked; the server is to be asked, and its certificate read, by name.
        ("grpc.default_authority", f"{name}:{source.port}"),
    ]
    if not source.tls:
        return grpc.aio.insecure_channel(where, options)
    options.append(("grpc.ssl_target_name_override", source.host))
    return grpc.aio.secure_channel(where, grpc.ssl_channel_credentials(trusted()), options)


@cache
def trusted() -> bytes | None:
    """Give this machine's certificate authorities, those of `SSL_CERT_FILE` where it is set.

    gRPC would take its own list, and not know the company's authority that every other program here trusts.
    """
    path = ssl.get_default_verify_paths().cafile
    return Path(path).read_bytes() if path else None
