"""Every message, every kind of stored group and of other entries of buckets has its golden files, which later releases
have to read; and simulations print byte for byte what they printed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from bus.envelope import MESSAGES
from bus.messages import Action
from bus.topology import BUCKETS
from rules.catalog import KINDS
from tests.golden_entries import ALSO_WRITTEN, FORMS
from tests.golden_files import GOLDEN, bare_messages, simulated, simulations

ROOT = Path(__file__).parents[2]


def missing(folder: str, names: list[str], suffix: str = "json") -> list[str]:
    files = {path.stem.partition("-")[0] for path in (GOLDEN / folder).glob(f"*.{suffix}")}
    return [f"tests/golden/{folder}/{name}.{suffix}" for name in sorted({*names} ^ files)]


def test_every_message_has_its_golden_file() -> None:
    hint = "missing, or of no message: run scripts/gen-golden-messages.py"
    assert missing("messages", [kind.__name__ for kind in (*MESSAGES, *bare_messages())]) == [], hint


def test_every_kind_of_stored_group_has_its_golden_file() -> None:
    hint = "missing, or of no kind: run scripts/gen-golden-groups.py"
    assert missing("groups", [model.__name__ for model in KINDS]) == [], hint


def test_every_kind_of_stored_entry_has_its_golden_file() -> None:
    assert missing("entries", [*FORMS], "jsonl") == [], "missing, or of no form: run scripts/gen-golden-entries.py"
    assert {*BUCKETS} <= {form.place for form in FORMS.values()}


def writers(path: str, text: str) -> Iterator[str]:
    """The module, where it writes entries of a bucket (`put_all`, or `put` with a revision), or an owner's marker."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = node.func.attr == "put" and any(one.arg == "revision" for one in node.keywords)
            if named or node.func.attr in ("put_all", "acquire_epoch"):
                yield path


def test_every_module_that_writes_into_a_bucket_has_its_golden_file() -> None:
    modules = sorted(path for part in ("reactor", "rules") for path in (ROOT / part).rglob("*.py"))
    found = {one for path in modules for one in writers(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))}
    hint = "describe what it writes in FORMS of tests/golden_entries.py, and run scripts/gen-golden-entries.py"
    assert found == {form.writer for form in FORMS.values()} | {*ALSO_WRITTEN}, hint
    assert {*ALSO_WRITTEN.values()} <= {*FORMS}


def test_a_module_that_writes_into_a_bucket_is_found() -> None:
    text = "async def save(self):\n    await self._store.put(key, body, revision={})\n"
    assert [*writers("x.py", text.format("0"))] == ["x.py"]
    assert [*writers("x.py", "queue.put(line)")] == []
    assert [*writers("x.py", "await store.put_all(writes)")] == ["x.py"]
    assert [*writers("x.py", "await bus.acquire_epoch(subject, name)")] == ["x.py"]


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
