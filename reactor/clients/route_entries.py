"""The weighted backends of a route, as its kind's description says where they are: the one way to read any route."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from reactor.clients.changes import metadata_of
from reactor.clients.kubernetes_port import JsonObject
from rules.kinds.traffic.apportion import apportion
from rules.rulefile.route_kinds import EVERY, FQDN, RouteFormat

WEIGHT_MAX = 1_000_000
"""The Gateway API's limit; others have none, or need none beyond it."""
SERVICE_MAX = 253
FRACTIONS = 100
"""Decimal weights count to the hundredth, as Consul's do."""
_DIGITS = re.compile(r"[0-9]{1,7}")


class Unreadable(Exception):
    """The object cannot be used: says why, to its owner."""

    def __init__(self, message: str, reason: str = "Invalid") -> None:
        """`reason`: in one word, for outcomes."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """One backend of a route, and its place in the route."""

    at: str
    """JSON Pointer to it."""
    tests: tuple[tuple[str, str], ...]
    """Pointers within it, and what they name: these fields say which backend it is, and a write is conditional on
    them."""
    service: str
    """Service as rule files name it: `name`, or `namespace/name` where it is in another namespace than the route."""
    weight: object
    """Weight as the object has it: an int, a float or a quantity string; None: the object has none."""
    default: int | None = None
    """Meaning of an absent weight; None: absent is not allowed to stay."""
    field: str = "weight"
    """Pointer to its weight, within it."""
    where: str = ""
    """Path as people write it: `spec.backends[0]`."""

    def has_weight(self, wanted: int) -> bool:
        """True if nothing has to be written. An absent weight that means the wanted one stays absent."""
        if self.weight is None:
            return self.default == wanted
        return not isinstance(self.weight, bool) and self.weight in (wanted, str(wanted))


class _WeightedPart(NamedTuple):
    """A part of a route that has a weighted list."""

    found: JsonObject
    """It, or the whole route where that has no rules."""
    path: tuple[str | int, ...]
    """Path of the rule in the object."""
    inside: str
    """Dotted path of the list within the rule."""

    def backends(self) -> list[Any]:
        """Give the list. Raises Unreadable."""
        return _list(_field(self.found, self.inside, _text(self.path)), _text((*self.path, *self.inside.split("."))))


def entries(kind: RouteFormat, found: JsonObject, rule: int | str | None = None) -> list[RouteEntry]:
    """Give the backends in their order: those of one rule where the kind has rules.

    `rule`: its index or name; None: the first with two or more backends, else the first. A Service that is given twice
    has two entries that go together. Raises Unreadable.
    """
    part = _managed(kind, found, rule)
    path = (*part.path, *part.inside.split("."))
    at, where, home = f"/{_pointer(path)}", _text(path), metadata_of(found)
    made = [
        _entry(kind, _dict(one, f"{where}[{index}]"), f"{at}/{index}", f"{where}[{index}]", home)
        for index, one in enumerate(part.backends())
        if not isinstance(one, dict) or all(_field(one, field, "") in values for field, values in kind.only)
    ]
    services = [entry.service for entry in made]
    twice = next((service for index, service in enumerate(services) if service in services[:index]), None)
    if kind.sum_to and twice is not None:
        raise Unreadable(f"{where} has {twice} twice: it is not known which of them gets how much of {kind.sum_to}")
    return made


def rules_of(kind: RouteFormat, found: JsonObject) -> int:
    """Give how many rules the route has; 1 where its kind has none. Raises Unreadable."""
    return sum(1 for _ in _rules(kind, found))


def weights_of(kind: RouteFormat, some: Sequence[RouteEntry]) -> list[int]:
    """Give the weights of the entries as whole numbers. Where a kind asks for a total, they are parts of that total.

    Raises Unreadable.
    """
    weights = [hundredths(kind, entry) for entry in some]
    if kind.even_at_zero and not any(weights):
        weights = [FRACTIONS] * len(weights)
    if kind.sum_to and any(weights):
        return apportion(kind.sum_to, weights)
    return [weight // FRACTIONS for weight in weights]


def hundredths(kind: RouteFormat, entry: RouteEntry) -> int:
    """Give a weight in hundredths. v1alpha1 of TrafficSplit takes quantities: `1` and `"1"` are, `"500m"` is not.

    Raises Unreadable.
    """
    found = entry.default if entry.weight is None else entry.weight
    where = f"{entry.where}.{entry.field.replace('/', '.')}"
    if found is None:
        raise Unreadable(f"{where} is missing")
    number = int(found) if isinstance(found, str) and _DIGITS.fullmatch(found) else found
    whole = isinstance(number, int) or (isinstance(number, float) and (kind.decimals or number.is_integer()))
    if isinstance(number, bool) or not whole or not 0 <= number <= WEIGHT_MAX:  # type: ignore[operator]  # only a number is whole
        what = "number" if kind.decimals else "whole number"
        raise Unreadable(f"{where} is {_short(found)}, it has to be a {what} from 0 to {WEIGHT_MAX}")
    return round(number * FRACTIONS)  # type: ignore[operator]  # only a number is whole


def _managed(kind: RouteFormat, found: JsonObject, rule: int | str | None) -> _WeightedPart:
    rules = list(_rules(kind, found))
    if not rules:
        raise Unreadable("the route has no rules", "RuleMissing")
    if not kind.has_rules:
        return rules[0]
    if isinstance(rule, int):
        if not 0 <= rule < len(rules):
            raise Unreadable(f"there is no rule {rule}, the route has {len(rules)}", "RuleMissing")
        return rules[rule]
    if isinstance(rule, str):
        named = (one for one in rules if kind.rule_name and one.found.get(kind.rule_name) == rule)
        if (one := next(named, None)) is None:
            raise Unreadable(f"there is no rule named {rule!r}", "RuleMissing")
        return one
    return next((one for one in rules if _has_several(one)), rules[0])


def _has_several(rule: _WeightedPart) -> bool:
    try:
        return len(rule.backends()) > 1
    except Unreadable:
        return False  # the rules that we do not read may be as they like


def _rules(kind: RouteFormat, found: JsonObject) -> Iterator[_WeightedPart]:
    _dict(found.get("spec"), "spec")
    for path in kind.backends:
        before, every, inside = path.partition(EVERY)
        if not every:
            yield _WeightedPart(found, (), path)
            continue
        for index, rule in enumerate(_list(_field(found, before, ""), before)):
            yield _WeightedPart(rule if isinstance(rule, dict) else {"": rule}, (*before.split("."), index), inside[1:])


def _entry(kind: RouteFormat, found: JsonObject, at: str, where: str, home: JsonObject) -> RouteEntry:
    name = _field(found, kind.name, where)
    service = home.get("name") if kind.own_name and not name else name
    if not isinstance(service, str) or not 0 < len(service) <= SERVICE_MAX:
        raise Unreadable(f"{where} names no Service")
    elsewhere = _field(found, kind.namespace, where) if kind.namespace else None
    tests = [(_field_pointer(kind.name), name)] if name else []
    if elsewhere is not None:
        tests.append((_field_pointer(kind.namespace), elsewhere))
    if kind.hosts and (host := FQDN.fullmatch(service)):
        service, elsewhere = host[1], host[2]
    if isinstance(elsewhere, str) and elsewhere and elsewhere != (home.get("namespace") or ""):
        service = f"{elsewhere}/{service}"
        if len(service) > SERVICE_MAX:
            raise Unreadable(f"{where}: the name {service[:80]}... is too long")
    weight = _field(found, kind.weight, where)
    field = _field_pointer(kind.weight)
    return RouteEntry(at, tuple(tests), service, weight, kind.default_weight, field, where)


def _field(found: JsonObject, path: str, where: str) -> Any:
    """Give the value at a dotted path; None: there is none. Raises Unreadable."""
    value: Any = found
    for depth, key in enumerate(parts := path.split(".")):
        if value is None:
            return None
        if not isinstance(value, dict):
            where = ".".join(filter(None, (where, *parts[:depth])))
        value = _dict(value, where).get(key)
    return value


@cache
def _field_pointer(path: str) -> str:
    """Give the JSON Pointer of a dotted path, of which a kind has few."""
    return _pointer(path.split("."))


def _pointer(path: Sequence[str | int]) -> str:
    return "/".join(escape(str(part)) for part in path)


def _text(path: Sequence[str | int]) -> str:
    """Write a path as people do: `spec.rules[0].backendRefs`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def escape(key: str) -> str:
    """Write a key as one token of a JSON Pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _dict(found: object, where: str) -> JsonObject:
    if not isinstance(found, dict):
        raise Unreadable(f"{where} is {_short(found)}, it has to be an object")
    return found


def _list(found: object, where: str) -> list[Any]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise Unreadable(f"{where} is {_short(found)}, it has to be a list")
    return found


def _short(found: object) -> str:
    return "missing" if found is None else repr(found)[:80]
