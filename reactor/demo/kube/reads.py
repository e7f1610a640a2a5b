"""Get and list: the newest objects, an exact old view, or page by page from one consistent view."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reactor.demo.kube.errors import StatusError, bad_request, expired, not_found, too_new
from reactor.demo.kube.object_selectors import parse_filter
from reactor.demo.kube.objects import JsonObject, NamespacedName, encode
from reactor.demo.kube.store import Revision

if TYPE_CHECKING:
    from reactor.demo.kube.call import ApiRequest
    from reactor.demo.kube.cluster_state import EmulatedState

_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Page:
    """Answer to a list."""

    items: list[Revision]
    metadata: JsonObject


def get(cluster: EmulatedState, call: ApiRequest, *, stale: int | None = None) -> Revision:
    """Give one object; 404 when there is none (any more, or yet, in a stale view)."""
    _not_newer(call.number("resourceVersion"), cluster.store.version)
    found = _view(cluster, call, stale).get(call.key)
    if found is None:
        raise not_found(call.resource, call.name)
    return found


def list_page(cluster: EmulatedState, call: ApiRequest, *, stale: int | None = None) -> Page:
    """Give a list or one page of it, ordered by namespace and name as etcd orders its keys."""
    token, limit = call.query.get("continue", ""), call.number("limit")
    start: NamespacedName = ("", "")
    if token:
        if call.query.get("resourceVersion", "0") not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        version, start = _read_token(token)
        objects = _exact(cluster, call, version, _CONTINUE_TOO_OLD)
    else:
        version, objects = _objects(cluster, call, stale)
    only = parse_filter(call.resource, call.namespace, "", call.query)
    keys = sorted(key for key, one in objects.items() if key > start and only.matches(one.value))
    metadata: JsonObject = {"resourceVersion": str(version)}
    if limit and len(keys) > limit:
        metadata["continue"] = _write_token(version, keys[limit - 1])
        if not (only.labels or only.fields):
            metadata["remainingItemCount"] = len(keys) - limit
        keys = keys[:limit]
    return Page([objects[key] for key in keys], metadata)


def encoded(page: Page, call: ApiRequest) -> bytes:
    """Write a list; every item is encoded at most once in its life."""
    resource = call.resource
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": page.metadata}
    return encode(head)[:-1] + b',"items":[' + b",".join(one.encoded(resource) for one in page.items) + b"]}\n"


def _objects(cluster: EmulatedState, call: ApiRequest, stale: int | None) -> tuple[int, dict[NamespacedName, Revision]]:
    asked, match = call.number("resourceVersion"), call.query.get("resourceVersionMatch", "")
    if match and not call.query.get("resourceVersion"):
        raise bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
    _not_newer(asked, cluster.store.version)
    if match == "Exact":
        return asked, _exact(cluster, call, asked, f"The provided resource version is too old: {asked}")
    return cluster.store.version if stale is None else stale, _view(cluster, call, stale)


def _view(cluster: EmulatedState, call: ApiRequest, stale: int | None) -> dict[NamespacedName, Revision]:
    collection = cluster.store.collection(call.resource)
    # Staleness is a fault we play, so it goes back as far as history allows instead of failing.
    return collection.objects if stale is None else collection.as_of(max(stale, collection.compacted))


def _exact(cluster: EmulatedState, call: ApiRequest, version: int, too_old: str) -> dict[NamespacedName, Revision]:
    try:
        return cluster.store.collection(call.resource).as_of(version)
    except StatusError as forgotten:
        raise expired(too_old) from forgotten


def _not_newer(asked: int, newest: int) -> None:
    if asked > newest:
        raise too_new(asked, newest)


def _write_token(version: int, last: NamespacedName) -> str:
    return base64.urlsafe_b64encode(encode({"v": "meta.k8s.io/v1", "rv": version, "start": last})).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, NamespacedName]:
    try:
        read = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = read["start"]
        return int(read["rv"]), (str(namespace), str(name))
    except (ValueError, KeyError, TypeError) as broken:
        raise bad_request(f"continue key is not valid: {broken}") from broken
