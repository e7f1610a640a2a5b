"""Kinds of routes of the settings: any object with a weighted list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from reactor.settings.part import SettingsPart
from rules.rulefile.route_kinds import EVERY, PATH, RouteFormat

FieldPath = Annotated[str, Field(pattern=rf"^{PATH.pattern}$", max_length=253)]


class CustomRouteKind(SettingsPart):
    """A kind of object with a weighted list, for rules with `route: {kind: Custom, customKind: …}`."""

    group: Annotated[str, Field(pattern=r"^[a-z0-9.-]+$", max_length=253)]
    """API group."""
    plural: Annotated[str, Field(pattern=r"^[a-z0-9.-]+$", max_length=253)]
    """Plural name in the path of its API: `weightedroutes`."""
    versions: Annotated[tuple[Annotated[str, Field(pattern=r"^v[a-z0-9]+$", max_length=63)], ...], Field(min_length=1)]
    """API versions with these fields, the one to use first in front."""
    backends: Annotated[str, Field(pattern=rf"^{PATH.pattern}(\[\*\]\.{PATH.pattern})?$", max_length=253)]
    """Path of the weighted list: `spec.backends`; where each rule has one, `spec.rules[*].backends`."""
    name: FieldPath = "name"
    """Field of a backend with the Service's name. Dots lead inside: `destination.host`."""
    namespace: FieldPath | None = None
    """Field of a backend with its namespace. Default: all are in the route's."""
    weight: FieldPath = "weight"
    """Field of a backend with its weight."""
    rule_name: FieldPath | None = None
    """Field of a rule with its name, for `rule:` of rule files. Default: rules are found by their index only."""
    default_weight: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Weight of a backend that has no weight field. Default: the field is required."""
    sum_to: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Sum that the weights must have, as 100. Default: their ratio counts."""
    all_zero: bool = False
    """True: all weights may be zero."""

    @model_validator(mode="after")
    def _named_rules(self) -> CustomRouteKind:
        if self.rule_name is not None and EVERY not in self.backends:
            msg = f"ruleName goes with a list of rules: write backends as spec.rules{EVERY}.backends"
            raise ValueError(msg)
        return self

    def described(self) -> RouteFormat:
        """Give it as built-in kinds are described."""
        return RouteFormat(
            self.group, self.plural, self.versions, (self.backends,), name=self.name, namespace=self.namespace or "",
            weight=self.weight, rule_name=self.rule_name or "", default_weight=self.default_weight,
            sum_to=self.sum_to or 0, all_zero=self.all_zero,
        )  # fmt: skip
