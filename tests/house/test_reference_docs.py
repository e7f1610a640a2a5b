"""docs/reference/ says what the models, the reasons and the command line say: all of it, and nothing else."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reactor.cli.main import COMMANDS
from rules.core.reasons import SENTENCES, Because, Held
from rules.loader import schema

ROOT = Path(__file__).parents[2]
HINT = "run: .venv/bin/python scripts/gen-rule-reference.py"
PAGES = ("rule-file.md", "reasons.md", "cli.md")


def page(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_rule_reference", ROOT / "scripts" / "gen-rule-reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_source_says(name: str, generator: ModuleType) -> None:
    assert page(name) == generator.PAGES[name](), HINT


def test_every_key_of_a_rule_file_is_on_the_page() -> None:
    text = page("rule-file.md")
    for definition in schema()["$defs"].values():
        for key in definition.get("properties", {}):
            assert key == "kind" or f"| `{key}` |" in text, key


def test_every_key_has_a_meaning() -> None:
    assert [line for line in page("rule-file.md").splitlines() if line.endswith("|  |")] == []


def test_every_reason_has_a_sentence_and_is_on_the_page() -> None:
    assert set(SENTENCES) == {*Because, *Held}
    assert all(f"| `{word.value}` | {sentence} |" in page("reasons.md") for word, sentence in SENTENCES.items())


def test_every_command_is_on_the_page() -> None:
    assert re.findall(r"^## reactor ([\w-]+)$", page("cli.md"), re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", PAGES)
def test_links_within_the_reference_lead_somewhere(name: str) -> None:
    headings = {
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", page(name), re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)]+)\)", page(name)):
        file, _, anchor = link.partition("#")
        assert anchor in headings if not file else (ROOT / "docs" / "reference" / file).is_file(), link
