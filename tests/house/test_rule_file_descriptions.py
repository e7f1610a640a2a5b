"""Editors show what a key is where you write it: each key of a rule file has its description in the JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rules.loader import schema


def keys() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each key of each model, and of the file."""
    whole = schema()
    for name, model in {"the file": whole, **whole["$defs"]}.items():
        for key, part in model.get("properties", {}).items():
            yield f"{name}.{key}", part


def test_each_key_of_a_rule_file_has_a_description() -> None:
    found = dict(keys())
    assert len(found) > 300
    missing = [where for where, part in found.items() if not part.get("description", "").strip()]
    assert missing == [], "write a docstring below the field"


def test_a_description_is_a_sentence() -> None:
    odd = [where for where, part in keys() if not part["description"].rstrip().endswith((".", "`", ")"))]
    assert odd == [], "end it with a full stop"
