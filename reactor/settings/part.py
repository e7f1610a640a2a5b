"""What every part of the settings has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class SettingsPart(BaseModel):
    """A part of the settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True,
        use_attribute_docstrings=True,  # for editors, by `reactor schema settings`
    )  # fmt: skip
