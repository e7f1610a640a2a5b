"""Refusals of the emulator: `metav1.Status`, in upstream's own words.

Clients decide by code and reason, people read the message; both are copied from `apimachinery/pkg/api/errors`, so that
code written against the emulator meets nothing new on a real server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.resources import Resource


class FieldError(NamedTuple):
    """One thing that is wrong with one field."""

    field: str
    reason: str
    text: str


class StatusError(Exception):
    """The request is refused."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: JsonObject | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after

    def status(self) -> JsonObject:
        """Give the body of the answer."""
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details = dict(self.details)
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        return status | ({"details": details} if details else {})


def _about(resource: Resource, name: str) -> JsonObject:
    return {"name": name, "kind": resource.plural} | ({"group": resource.group} if resource.group else {})


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def not_found(resource: Resource, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource.qualified} "{name}" not found', details=_about(resource, name))


def already_exists(resource: Resource, name: str) -> StatusError:
    message = f'{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_about(resource, name))


def conflict(resource: Resource, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_about(resource, name))


def modified(resource: Resource, name: str) -> StatusError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def invalid(resource: Resource, name: str, problems: Sequence[FieldError]) -> StatusError:
    texts = [f"{problem.field}: {problem.text}" for problem in problems]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": found.reason, "message": found.text, "field": found.field} for found in problems]
    details = _about(resource, name) | {"kind": resource.kind, "causes": causes}
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {listed}', details=details)


def rejected_patch() -> StatusError:
    """A patch that is well formed and cannot be carried out, a failed `test` above all. Upstream does not say why."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request")


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {asked} ({oldest})")


def too_new(asked: int, newest: int) -> StatusError:
    """The client has seen more than this server: it must not be given an older answer."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {newest}"
    return StatusError(504, "Timeout", message, details={"causes": causes}, retry_after=1)


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return StatusError(415, "UnsupportedMediaType", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(verb: str, resource: Resource, subresource: str, namespace: str, name: str) -> StatusError:
    what = f"{resource.plural}/{subresource}" if subresource else resource.plural
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    message = (
        f'{resource.qualified} "{name}" is forbidden: User "emulator" cannot {verb} resource "{what}" '
        f'in API group "{resource.group}"{where}'
    )
    return StatusError(403, "Forbidden", message, details=_about(resource, name))
