"""The words that all parts of a rule file are made of: names, durations, targets and patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from bus.characters import all_seen
from rules.rulefile.described import Described
from rules.rulefile.selectors import parsed
from rules.rulefile.targets import check_pattern, check_target, check_template


class Model(Described):
    """A part of a rule file: frozen, strict, and without room for keys that mean nothing."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, validate_by_name=True,
        validate_by_alias=True, serialize_by_alias=True, allow_inf_nan=False,
        field_title_generator=lambda name, _: to_camel(name),  # for editors
        defer_build=True,  # one that is only a part of others is never built by itself
    )  # fmt: skip

    def _private(self, name: str) -> Any:
        """A private attribute of a model that is made: pydantic's own way takes five times as long, and each decision
        asks a dozen times."""
        return self.__pydantic_private__[name]  # type: ignore[index]  # None only while it is made


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=128)]
"""Letters, digits, `.`, `_` and `-`: a name is part of ids, subjects and metrics."""

YEAR = 366 * 86_400
Seconds = Annotated[float, Field(ge=0, le=YEAR)]
"""A duration in seconds, at most a year."""
Period = Annotated[float, Field(ge=0.1, le=86_400)]
"""Period in seconds: not more than ten times a second, not less than once a day."""


def _checked(check: Callable[[str], object]) -> AfterValidator:
    def checked(text: str) -> str:
        check(text)
        return text

    return AfterValidator(checked)


_Path = StringConstraints(min_length=1, max_length=1024)
_Seen = AfterValidator(all_seen)
Pattern = Annotated[str, _Path, _Seen, _checked(check_pattern)]
"""Targets that match segment by segment."""
TargetName = Annotated[str, _Path, _Seen, _checked(check_target)]
"""One target."""
Template = Annotated[str, _Path, _Seen, _checked(check_template)]
"""A target in which `{label}` takes a label of the series, alert or object."""

KubeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", min_length=1, max_length=253)]
ClusterName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=253)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=317)]
"""A key, kind or group as Kubernetes has them: a prefix and a name."""
Selector = Annotated[str, StringConstraints(min_length=1, max_length=1024), _checked(parsed)]
"""A Kubernetes label selector."""
