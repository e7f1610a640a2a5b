"""The targets that labels give, each template filled once for each label set. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from bus.messages import Target
from rules.rulefile.targets import MissingLabel, fill

_TARGET: TypeAdapter[str] = TypeAdapter(Target)
LABEL_CHARACTERS = 4096  # what a message takes


class Targets:
    """One source's template."""

    def __init__(self, template: str) -> None:
        self._template = template
        self._known: dict[tuple[tuple[str, str], ...], str | None] = {}

    @property
    def without(self) -> int:
        """Number of label sets that gave no target: live, each is counted and logged."""
        return sum(target is None for target in self._known.values())

    def of(self, labels: Mapping[str, str]) -> str | None:
        """Give the target; None: a label is missing, or makes it none."""
        key = tuple(sorted(labels.items()))
        if key not in self._known:
            self._known[key] = self._filled(labels)
        return self._known[key]

    def _filled(self, labels: Mapping[str, str]) -> str | None:
        try:
            return _TARGET.validate_python(fill(self._template, labels))
        except (MissingLabel, ValidationError):
            return None


def short(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels as a message takes them."""
    return {name: text[:LABEL_CHARACTERS] for name, text in labels.items()}
