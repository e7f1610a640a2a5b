"""What the product asks of a Kubernetes API: raw JSON, one call each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from reactor.errors import Retryable, Terminal

JsonObject = dict[str, Any]


class NotFound(Terminal):
    """404: the object, or its kind, is not there."""


class Forbidden(Terminal):
    """401 or 403: we may not. The message names the verb, the resource and what to grant."""


class Invalid(Terminal):
    """400, 415 or 422 other than a failed test: the server does not accept what we send."""


class Conflict(Retryable):
    """409, or 422 because a JSON Patch test failed: the object has changed since it was read. Read it again."""


class ApiUnavailable(Retryable):
    """No answer in time, a cut connection, 429 or 5xx."""


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

    async def list(self, path: str, *, label_selector: str | None = None) -> Sequence[JsonObject]:
        """Read all objects, page by page."""
        ...

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        """RFC 6902 with our field manager; a failed `test` is Conflict."""
        ...

    async def create(self, path: str, body: Mapping[str, Any]) -> JsonObject:
        """POST."""
        ...
