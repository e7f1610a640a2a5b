"""Every message and every kind of stored group has its golden files, which later releases have to read; and simulations
print byte for byte what they printed."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from bus.envelope import MESSAGES
from bus.messages import Action
from rules.catalog import KINDS
from tests.golden_files import GOLDEN, bare_messages, simulated, simulations


def missing(folder: str, names: list[str], suffix: str = "json") -> list[str]:
    files = {path.stem.partition("-")[0] for path in (GOLDEN / folder).glob(f"*.{suffix}")}
    return [f"tests/golden/{folder}/{name}.{suffix}" for name in sorted({*names} ^ files)]


def test_every_message_has_its_golden_file() -> None:
    hint = "missing, or of no message: run scripts/gen-golden-messages.py"
    assert missing("messages", [kind.__name__ for kind in (*MESSAGES, *bare_messages())]) == [], hint


def test_every_kind_of_stored_group_has_its_golden_file() -> None:
    hint = "missing, or of no kind: run scripts/gen-golden-groups.py"
    assert missing("groups", [model.__name__ for model in KINDS]) == [], hint


def test_every_rule_test_of_the_library_has_its_golden_simulation() -> None:
    assert missing("simulations", simulations(), "jsonl") == [], "run scripts/gen-golden-simulations.py"


@pytest.mark.parametrize("name", simulations())
def test_a_simulation_prints_byte_for_byte_what_it_printed(name: str) -> None:
    hint = "if that is meant: run scripts/gen-golden-simulations.py, and say what has changed in CHANGELOG.md"
    assert simulated(name) == (GOLDEN / "simulations" / f"{name}.jsonl").read_text("utf-8"), hint


def test_golden_simulations_have_every_action() -> None:
    texts = "".join(path.read_text("utf-8") for path in (GOLDEN / "simulations").glob("*.jsonl"))
    lines = [json.loads(line) for line in texts.splitlines() if not line.startswith("# ")]
    assert {line["action"] for line in lines if "action" in line} == {one.__name__ for one in get_args(Action)}
