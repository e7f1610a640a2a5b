"""Errors for the refusals of a Kubernetes API: pure, so that every answer of the table can be tested without a server.

The messages are for the person who has to do something about it: which cluster, which request, the server's own words,
and for 401 and 403 what to grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bus.json_text import parsed
from reactor.clients.kubernetes_port import (
    ApiUnavailable,
    BudgetsOverlap,
    BudgetSpent,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ObjectNotFound,
)
from reactor.clients.watching import Expired
from reactor.runtime.errors import Retryable, Terminal

JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_EXCERPT_CHARACTERS = 300  # an HTML error page of a proxy is not worth more of a log line
_OVERLOADED = frozenset({408, 425, 429})
_NO_PERMISSION = ("exceeded quota", "denied the request", "violates PodSecurity", "is being terminated")
"""Words of 403s that are no matter of RBAC: quota, admission webhooks and policies, Pod Security, a dying namespace."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Request, as far as it matters for explaining the answer."""

    cluster: str
    method: str
    path: str
    query: Mapping[str, str]
    content_type: str = ""

    @property
    def text(self) -> str:
        """`east: GET /api/v1/pods`."""
        return f"{self.cluster}: {self.method} {self.path}"


def refusal(request: RefusedRequest, status: int, body: bytes, headers: Mapping[str, str]) -> Terminal | Retryable:
    """Give the error for an answer other than 2xx."""
    message = f"{request.text} was answered {status}: {_words(body)}"
    if status in (401, 403):
        return Forbidden(f"{message}; {_remedy(request, status, message)}")
    if status == 404:
        return (ObjectNotFound if _names_object(body) else NotFound)(message)
    if status == 409 or (status == 422 and _failed_test(request, body)):
        return Conflict(f"{message}; the object has changed since it was read", after=_retry_after(body, headers))
    if request.path.endswith("/eviction") and (refused := _refused_eviction(status, message, body, headers)):
        return refused
    if status == 410:
        return Expired(message, after=_retry_after(body, headers))
    if status in _OVERLOADED or status >= 500:
        return ApiUnavailable(message, after=_retry_after(body, headers), status=status)
    return Invalid(message)


def _status_of(body: bytes) -> dict[str, object]:
    try:
        status = parsed(body)
    except ValueError:  # also UnicodeDecodeError: something between us and the server answered, such as a proxy
        return {}
    return status if isinstance(status, dict) else {}


def _names_object(body: bytes) -> bool:
    """True of `deployments.apps "web" not found`, also from a server that gives no details."""
    status = _status_of(body)
    details = status.get("details")
    return (isinstance(details, dict) and bool(details.get("name"))) or '" not found' in str(status.get("message"))


def _words(body: bytes) -> str:
    message = _status_of(body).get("message")
    text = message if isinstance(message, str) and message else body.decode("utf-8", "replace")
    return " ".join(text.split())[:_EXCERPT_CHARACTERS] or "no words"


def _failed_test(request: RefusedRequest, body: bytes) -> bool:
    """True if a 422 says that a JSON Patch does not fit the object any more.

    The API server answers every patch that it cannot apply, a failed `test` and a path that is gone alike, with a
    generic Status; a patch that it could apply and whose result breaks the schema names the object: `… is invalid`.
    """
    if request.content_type != JSON_PATCH:
        return False
    text = body.decode("utf-8", "replace")
    return "the server rejected our request" in text or "testing value" in text or "test failed" in text


def _refused_eviction(
    status: int, message: str, body: bytes, headers: Mapping[str, str]
) -> BudgetSpent | BudgetsOverlap | None:
    """Error of the Eviction API about disruption budgets; None: it is about something else, such as its own load.

    Source: Kubernetes pkg/registry/core/pod/rest/eviction.go: 429 with the cause DisruptionBudget, 500 in these words.
    """
    details = _status_of(body).get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    spent = [cause for cause in causes or () if isinstance(cause, dict) and cause.get("reason") == "DisruptionBudget"]
    if status == 429 and spent:
        return BudgetSpent(f"{message} {spent[0].get('message', '')}", after=_retry_after(body, headers))
    if status == 500 and b"more than one PodDisruptionBudget" in body:
        return BudgetsOverlap(message)
    return None


def _retry_after(body: bytes, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: the header, else the Status's own field. An HTTP date is ignored: no server sends one here."""
    details = _status_of(body).get("details")
    inside = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    for value in (headers.get("Retry-After"), inside):
        try:
            seconds = float(str(value))
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _remedy(request: RefusedRequest, status: int, message: str) -> str:
    if status == 401:
        return f"the credentials of cluster {request.cluster!r} are not accepted: check its kubeconfig and context"
    if any(words in message for words in _NO_PERMISSION):
        return "no permission would help: the cluster's own limits refuse this object"
    verb, group, resource, namespace = permission(request)
    where = f"in namespace {namespace!r}" if namespace else "in all namespaces"
    return f"grant the verb {verb!r} on resource {resource!r} of API group {group!r} {where}"


def permission(request: RefusedRequest) -> tuple[str, str, str, str]:
    """Give verb, API group, resource (with its subresource) and namespace, as an RBAC rule needs them."""
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = "/".join([*rest[:1], *rest[2:3]]) or request.path
    if request.method == "GET":
        verb = "get" if len(rest) > 1 else "watch" if request.query.get("watch") else "list"
    else:
        verb = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[request.method]
    return verb, group, resource, namespace
