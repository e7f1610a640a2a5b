"""The text of one rule."""

from __future__ import annotations

import yaml

from rules.rulefile.model import Rule


def rule_text(rule: Rule) -> str:
    """Give a rule as a rule file has it, in YAML: what was written, and no defaults."""
    return yaml.safe_dump(rule.model_dump(mode="json", by_alias=True, exclude_unset=True), sort_keys=False)
