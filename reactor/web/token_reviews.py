"""Identity behind a Bearer token, as a Kubernetes API server gives it (TokenReview)."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.settings.web_settings import WebTokenReview
from reactor.web.page_access import Access, Denied, Viewer

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
KEPT = timedelta(seconds=60)
"""An answer counts so long: a token that is withdrawn lets people in for so long at most."""
KEPT_MAX = 1_000


class TokenReviews:
    """Asks, and remembers the answer for a minute, by the digest of the token."""

    def __init__(
        self, settings: WebTokenReview, clusters: Callable[[str], Awaitable[KubeApi]], access: Access, clock: Clock
    ) -> None:
        self._settings, self._clusters, self._access, self._clock = settings, clusters, access, clock
        self._known: OrderedDict[bytes, tuple[datetime, dict[str, Any]]] = OrderedDict()

    async def viewer(self, token: str) -> Viewer:
        """Give whose token this is. Raises Denied, and what the API server answers instead."""
        key, now = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest(), self._clock.now()
        known = self._known.get(key)
        if known is None or now - known[0] >= KEPT:
            known = now, await self._ask(token)
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > KEPT_MAX:
                self._known.popitem(last=False)
        status = known[1]
        if not status.get("authenticated"):
            raise Denied(401, "this token is not known")
        user = status.get("user") or {}
        return self._access.granted(str(user.get("username", "")), map(str, user.get("groups") or ()))

    async def _ask(self, token: str) -> dict[str, Any]:
        spec: dict[str, Any] = {"token": token}
        if self._settings.audiences:
            spec["audiences"] = [*self._settings.audiences]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        answer = await (await self._clusters(self._settings.cluster)).create(PATH, body)
        status: dict[str, Any] = answer.get("status") or {}
        return status
