"""One HTTP request to one cluster: authenticate, parse, suffer the faults, carry out, answer."""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import Any

import yaml
from aiohttp import web

from reactor.demo.kube import dispatch, reads
from reactor.demo.kube.access import PATH, review
from reactor.demo.kube.call import WRITES, ApiRequest, parse
from reactor.demo.kube.cluster import EmulatedCluster
from reactor.demo.kube.discovery import discover, version
from reactor.demo.kube.errors import StatusError, bad_request, no_such_path, unauthorized, unsupported_media_type
from reactor.demo.kube.faults import Empty, FaultEffect, Stale, WatchEffect
from reactor.demo.kube.mishaps import answer_json, instead, lost, refused, wait
from reactor.demo.kube.objects import encode
from reactor.demo.kube.openapi import openapi
from reactor.demo.kube.scale import scale_of
from reactor.demo.kube.store import Revision
from reactor.demo.kube.table import encode_row, encode_rows, wants_table
from reactor.demo.kube.watch_stream import Encoder, WatchStream
from reactor.demo.kube.writes import WriteResult

BODY_BYTES_MAX = 3 * 1024 * 1024  # upstream: MaxRequestBodyBytes
_HEALTH = ("/healthz", "/readyz", "/livez")


async def serve(cluster: EmulatedCluster, request: web.BaseRequest, path: str) -> web.StreamResponse:
    """Answer one request."""
    _authenticate(cluster, request)
    if path == PATH and request.method == "POST":
        return answer_json(encode(review(cluster, await _body(request))), 201)
    found = _beside_resources(cluster, path)
    call = None
    if found is None:
        agent = request.headers.get("User-Agent", "")
        call = parse(cluster.catalog, request.method, path, request.query, media_type=request.content_type, agent=agent)
    effects = cluster.faults.meet(call)
    answer = await instead(effects, call, request)
    if answer is not None:
        return answer
    if found is not None or call is None:
        await wait(effects)
        return answer_json(found) if isinstance(found, bytes) else web.Response(text=found)
    if call.verb == "watch":
        await wait(effects)
        return await _watch(cluster, call, request, effects)
    if call.verb in WRITES:
        body = await _body(request)
        # A request that has arrived is carried out, even if its client does not wait for the answer.
        return await asyncio.shield(asyncio.ensure_future(_write(cluster, call, body, request, effects)))
    await wait(effects)
    return lost(effects, request) or _read(cluster, call, request, effects)


def _authenticate(cluster: EmulatedCluster, request: web.BaseRequest) -> None:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if cluster.token and not hmac.compare_digest(given.encode(), cluster.token.encode()):
        raise unauthorized()


def _beside_resources(cluster: EmulatedCluster, path: str) -> bytes | str | None:
    """Answer what is no resource: bytes are JSON, text is text, None is the path of a resource."""
    if path in _HEALTH:
        return "ok"
    if path.rstrip("/") == "/version":
        return encode(version(cluster.version))
    found = openapi(cluster.catalog, path)
    if found is None and not path.startswith("/api"):
        raise no_such_path()
    found = found or discover(cluster.catalog, path)
    return None if found is None else encode(found)


async def _body(request: web.BaseRequest) -> Any:
    if not request.body_exists:
        return None
    raw = bytearray()
    async for chunk in request.content.iter_any():
        raw += chunk
        if len(raw) > BODY_BYTES_MAX:
            raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_BYTES_MAX}")
    if "protobuf" in request.content_type:
        raise unsupported_media_type(["application/json", "application/yaml"])
    try:
        return json.loads(raw) if raw else None
    except ValueError as not_json:
        if "yaml" not in request.content_type:
            raise bad_request(f"the body is not JSON: {not_json}") from not_json
    try:
        return yaml.safe_load(raw.decode())
    except (yaml.YAMLError, UnicodeDecodeError) as not_yaml:
        raise bad_request(f"error converting YAML to JSON: {not_yaml}") from not_yaml


async def _write(
    cluster: EmulatedCluster, call: ApiRequest, body: Any, request: web.BaseRequest, effects: list[FaultEffect]
) -> web.StreamResponse:
    await wait(effects)
    try:
        if call.verb == "deletecollection":
            done = dispatch.delete_collection(cluster, call, body)
        else:
            done = dispatch.perform(cluster, call, body)
        answer = _written(call, done)
    except StatusError as refusal:
        answer = refused(refusal)
    await wait(effects, late=True)
    return lost(effects, request) or answer


def _written(call: ApiRequest, done: WriteResult) -> web.Response:
    body = done.revision.encoded(call.resource) if done.revision else encode(done.status)
    answer = answer_json(body, done.code)
    for warning in done.warnings:
        answer.headers.add("Warning", f"299 - {json.dumps(warning)}")
    return answer


def _read(
    cluster: EmulatedCluster, call: ApiRequest, request: web.BaseRequest, effects: list[FaultEffect]
) -> web.Response:
    stale = next((one.resource_version for one in effects if isinstance(one, Stale)), None)
    table = wants_table(request.headers.get("Accept", ""))
    if call.verb == "list":
        page = reads.list_page(cluster, call, stale=stale)
        for lack in (one for one in effects if isinstance(one, Empty)):
            page = reads.Page([row for number, row in enumerate(page.items) if number % lack.every], page.metadata)
        return answer_json(encode_rows(page, call.resource, cluster.now()) if table else reads.encoded(page, call))
    found = reads.get(cluster, call, stale=stale)
    if call.subresource == "scale":
        return answer_json(encode(scale_of(found)))
    return answer_json(encode_row(found, call.resource, cluster.now()) if table else found.encoded(call.resource))


async def _watch(
    cluster: EmulatedCluster, call: ApiRequest, request: web.BaseRequest, effects: list[FaultEffect]
) -> web.StreamResponse:
    def plain(revision: Revision) -> bytes:
        return revision.encoded(call.resource)

    def row(revision: Revision) -> bytes:
        return encode_row(revision, call.resource, cluster.now())

    encoder: Encoder = row if wants_table(request.headers.get("Accept", "")) else plain
    watch = WatchStream(cluster, call, encoder)
    for effect in effects:
        if isinstance(effect, WatchEffect):
            watch.interrupt(effect)
    return await watch.serve(request)
