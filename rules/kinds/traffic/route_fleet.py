"""One rule for a fleet of routes: its backends have `{name}`, `{namespace}` and `{cluster}` of the route."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rules.kinds.traffic.model import BackendRule, TrafficFailover
from rules.rulefile.targets import fill

PLACES = ("cluster", "namespace", "name")
SERVICE_MAX = 63
"""Characters of a Service's name."""
TARGET_MAX = 1024


def places(text: str) -> frozenset[str]:
    """The placeholders of this text that a route fills."""
    return frozenset(place for place in PLACES if f"{{{place}}}" in text)


def of_object(rule: TrafficFailover, object_: str) -> TrafficFailover:
    """Give the rule as it applies to one route (`east/shop/TrafficSplit/checkout`)."""
    if rule.route.selector is None or not rule.templated:
        return rule
    known = rule.of_objects.get(object_)
    if known is None:
        known = rule.of_objects[object_] = _filled(rule, object_)
    return known


def _filled(rule: TrafficFailover, object_: str) -> TrafficFailover:
    cluster, namespace, _, name = object_.split("#")[0].split("/")
    plain = {"cluster": cluster, "namespace": namespace, "name": name}
    backends = tuple(_backend(backend, plain) for backend in rule.backends or ())
    primary = _text(rule.primary, plain) if rule.primary is not None else None
    filled = rule.model_copy(update={"backends": backends, "primary": primary})
    return filled.plain()


def _backend(backend: BackendRule, plain: Mapping[str, str]) -> BackendRule:
    target = fill(backend.target, plain) if backend.target is not None else None
    return backend.model_copy(update={"service": _text(backend.service, plain), "target": target})


def _text(text: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def too_long(rule: TrafficFailover) -> str:
    """Reason why the names that a route makes are too long; empty: they are not."""
    for backend in rule.backends or ():
        name = backend.service.rpartition("/")[2]
        if len(name) > SERVICE_MAX:
            return f"the service {name!r} has {len(name)} characters, and may have {SERVICE_MAX}"
        if backend.target is not None and len(backend.target) > TARGET_MAX:
            return f"the target of {name!r} has {len(backend.target)} characters, and may have {TARGET_MAX}"
    return ""


@lru_cache(maxsize=65_536)
def namespace_in(template: str, target: str) -> str | None:
    """Give the namespace of the route whose backend has this target; None: it is none of this template.

    Empty: the template does not say the namespace.
    """
    pattern, segments = template.split("/"), target.split("/")
    if len(pattern) != len(segments):
        return None
    namespace = ""
    for want, found in zip(pattern, segments, strict=True):
        if want == "{namespace}":
            if namespace not in ("", found):
                return None
            namespace = found
        elif not places(want):
            if want != found:
                return None
        elif not _fits(want, found):
            return None
    return namespace


def _fits(template: str, text: str) -> bool:
    """True if the template could make the text, by the text before and after its placeholders."""
    before, after = template[: template.index("{")], template[template.rindex("}") + 1 :]
    return len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)
