"""Keys that every source has."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from bus.characters import all_seen
from rules.rulefile.fields import Model, Name, Template

TARGETS_MAX = 10_000
"""Of how many targets a source may speak where its rule file does not say: some 15 kB of memory each."""
TargetsMax = Annotated[int, Field(ge=1, le=1_000_000)]


class Source(Model):
    """Keys of every source."""

    name: Name
    """The name of the source. Unique in all files."""
    target: Template
    """The target that it observes; `{label}` takes a label. A missing label is a counted error, never an empty part."""
    signal: Annotated[str, StringConstraints(min_length=1, max_length=253), AfterValidator(all_seen)] | None = None
    """The signal: one of several opinions about the target. Default: the source's name."""
    refresh_seconds: Annotated[float, Field(ge=1, le=3600)] = 30
    """An unchanged status is said again at least this often."""
    stale_seconds: Annotated[float, Field(ge=1, le=86_400)] = 90
    """A target without an observation for this long becomes Unknown."""
    max_targets: TargetsMax = TARGETS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""

    @property
    def says(self) -> str:
        """The signal that its observations carry."""
        return self.signal or self.name
