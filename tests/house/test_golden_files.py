"""Every message and every kind of stored group has its golden files, which later releases have to read."""

from __future__ import annotations

from pathlib import Path

from bus.envelope import MESSAGES
from rules.catalog import KINDS

GOLDEN = Path(__file__).parents[1] / "golden"


def missing(folder: str, names: list[str]) -> list[str]:
    files = {path.stem.partition("-")[0] for path in (GOLDEN / folder).glob("*.json")}
    return [f"tests/golden/{folder}/{name}.json" for name in sorted({*names} ^ files)]


def test_every_message_has_its_golden_file() -> None:
    hint = "missing, or of no message: run scripts/gen-golden-messages.py"
    assert missing("messages", [kind.__name__ for kind in MESSAGES]) == [], hint


def test_every_kind_of_stored_group_has_its_golden_file() -> None:
    hint = "missing, or of no kind: run scripts/gen-golden-groups.py"
    assert missing("groups", [model.__name__ for model in KINDS]) == [], hint
