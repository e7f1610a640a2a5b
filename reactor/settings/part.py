"""Base of all parts of the settings."""

from __future__ import annotations

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from rules.rulefile.described import Described


class SettingsPart(Described):
    """A part of the settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True,
        defer_build=True,
    )  # fmt: skip
