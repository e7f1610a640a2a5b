"""Editors show what a key is where you write it: each key of a rule file has its description in the JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rules.loader import schema

FILLERS = {"a", "all", "an", "any", "default", "empty", "for", "in", "is", "it", "its", "not", "of", "only", "or", "s",
           "that", "the", "these", "this", "those", "when", "which", "whose", "with"}  # fmt: skip


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


def told(key: str, text: str) -> set[str]:
    """The words of a description that say more than the key does."""
    name = set(re.sub(r"([A-Z])", r" \1", key.rpartition(".")[2]).lower().split())
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in FILLERS and word not in name}


def test_a_description_says_more_than_the_name_of_its_key() -> None:
    circular = {where: text for where, part in keys() if len(told(where, text := part["description"])) < 2}
    assert circular == {}, "say what the value is, its unit, and what it does"


def test_a_description_that_says_no_more_than_its_key_is_found() -> None:
    assert len(told("Rule.guards", "Limits.")) < 2
    assert len(told("Affinity.labelSelector", "With these labels.")) < 2
    assert len(told("Probe.everySeconds", "Time from one request to the next.")) >= 2
