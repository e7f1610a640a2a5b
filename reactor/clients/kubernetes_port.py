"""Port to a Kubernetes API: raw JSON, one call each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from reactor.runtime.errors import Retryable, Terminal

JsonObject = dict[str, Any]


class NotFound(Terminal):
    """404: the object, or its kind, is not there."""


class ObjectNotFound(NotFound):
    """404 that names the object, as API servers do of one that is not there.

    Another 404 may come from a server that does not serve the kind yet, or from something between us and the server.
    """


class Forbidden(Terminal):
    """401 or 403: we may not. The message names the verb, the resource and what to grant."""


class Invalid(Terminal):
    """400, 415 or 422 other than a failed test: the server does not accept what we send."""


class Conflict(Retryable):
    """409, or 422 because a JSON Patch test failed: the object has changed since it was read. Read it again."""


class ApiUnavailable(Retryable):
    """The API gave no answer in time, cut the connection, or answered 429 or 5xx.

    `status`: the answer's, None where there was none.
    """

    def __init__(self, message: str, *, after: float | None = None, status: int | None = None) -> None:
        super().__init__(message, after=after)
        self.status = status


class BudgetSpent(ApiUnavailable):
    """429 to an eviction: the pod's disruption budget allows none now. The message names the budget."""


class BudgetsOverlap(Invalid):
    """500 to an eviction: more than one disruption budget selects the pod. Nothing but mending them helps."""


class KubeApi(Protocol):
    """One cluster. Paths are absolute (`/apis/split.smi-spec.io/v1alpha2/namespaces/shop/trafficsplits/checkout`).

    Every call raises NotFound, Forbidden, Invalid, Conflict or ApiUnavailable, with the object named.
    """

    @property
    def cluster(self) -> str:
        """Its name in the settings."""
        ...

    async def get(self, path: str) -> JsonObject:
        """Read one object, or a document of discovery."""
        ...

    async def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Sequence[JsonObject]:
        """Read all objects that are selected, page by page."""
        ...

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        """RFC 6902 with our field manager; a failed `test` is Conflict."""
        ...

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        """POST."""
        ...

    async def apply(self, path: str, body: Mapping[str, Any], *, force: bool = False) -> JsonObject:
        """Server-side apply with our field manager: makes the object where it is not there.

        With `metadata.resourceVersion` in the body only onto that version. A field that another writer owns is
        Conflict, unless `force`. A missing namespace, or a kind that is not served, is NotFound.
        """
        ...

    async def delete(
        self, path: str, *, uid: str = "", resource_version: str = "", grace_seconds: int | None = None
    ) -> None:
        """Delete what was read: with `uid` (and version) given, another object of that name is Conflict.

        `grace_seconds`: how long a pod may take to end; None: as its spec says.
        """
        ...
