"""The one word for why a cluster did not take an object: pure. Quota, admission and permissions all answer 403."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reactor.actions.outcomes import Declined, reason_of
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, Invalid, NotFound
from reactor.runtime.errors import ReactorError

MISSING_NAMESPACE = re.compile(r'namespaces "[^"]*" not found')
TOO_MANY = 429
# The API servers' own words: quota and Pod Security plugins, webhook and policy dispatchers, namespace lifecycle.
_WORDS: Sequence[tuple[str, str]] = (
    ("exceeded quota", "QuotaExceeded"),
    ("failed quota", "QuotaExceeded"),
    ("is being terminated", "NamespaceTerminating"),
    ("denied the request", "AdmissionDenied"),
    ("violates PodSecurity", "AdmissionDenied"),
    ("denied request", "AdmissionDenied"),
)


def word_for(error: ReactorError) -> str:
    """Give the reason that an outcome names: one word, for machines."""
    text = str(error)
    if isinstance(error, Declined):
        return error.reason
    if isinstance(error, ApiUnavailable):
        return "ApiUnavailable" if error.status == TOO_MANY else "ClusterUnreachable"
    if isinstance(error, NotFound):
        if MISSING_NAMESPACE.search(text):
            return "NamespaceMissing"
        return "ObjectMissing" if '" not found' in text else "KindMissing"
    if isinstance(error, Forbidden | Invalid):
        return next((word for words, word in _WORDS if words in text), reason_of(error))
    return reason_of(error)
