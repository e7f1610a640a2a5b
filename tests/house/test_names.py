"""One noun, one meaning: the page of names says what the code says, and no name is given twice."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path, PurePath
from types import ModuleType
from typing import get_args

import pytest

from bus.messages import Mode, Outcome, isolations, placements
from bus.messages.placements import Carrier
from rules.catalog import INTERNAL, KINDS
from rules.rulefile.sources import LoadedSource

ROOT = Path(__file__).parents[2]
HINT = "run: .venv/bin/python scripts/gen-names.py"
PARTS = "model state kind checks errors sources catalog store publisher limiter"
"""Parts that each kind or domain has: many folders may have a module of this name."""
DOMAINS = "traffic workload zone backtest decide"
"""Domains, of which a layer has its part in a folder or module of this name: deciding is a step of the engine and a
role, a backtest is played in `rules` and read from Prometheus in `reactor`."""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_names", ROOT / "scripts" / "gen-names.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "reference" / "names.md").read_text(encoding="utf-8")


def test_the_page_of_names_is_what_the_code_says(generator: ModuleType, page: str) -> None:
    assert page == generator.page(), HINT


def test_every_class_says_what_it_is(page: str) -> None:
    assert [line for line in page.splitlines() if line.endswith("|  |")] == []


def test_a_class_has_a_name_of_its_own(generator: ModuleType) -> None:
    twice = {name for name, places in generator.classes().items() if len(places) > 1}
    assert twice == set(), "find another word: see docs/reference/names.md"


def test_a_private_class_has_no_name_of_another(generator: ModuleType) -> None:
    """Public or private, also inside a class or function: one noun has one meaning."""
    found = Counter(name.lstrip("_") for name in generator.all_classes())
    assert {name for name, times in found.items() if times > 1} == set(), "find another word"


def test_no_alias_has_the_name_of_a_class(generator: ModuleType) -> None:
    classes = generator.classes()
    taken = [
        f"{file}: {name} is a class in {classes[name][0][0]}"
        for name, file, value in generator.aliases()
        if name in classes and not wire_form(classes[name][0][0], name, value)
    ]
    assert taken == [], "find another word for what is no class"


def wire_form(file: str, name: str, value: ast.expr) -> bool:
    """True if a Literal has the words of an enumeration: on the wire, and in rules, they are one noun with
    one meaning."""
    found = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
    words = {node.value for node in ast.walk(value) if isinstance(node, ast.Constant)}
    return ast.unparse(value).startswith("Literal[") and issubclass(found, StrEnum) and set(found) == words


def shared_names(files: Iterable[PurePath]) -> dict[str, list[str]]:
    """Names that several modules and folders have: name to them. Not counted are the main module of a folder, which may
    have its name, and commands, which have the name that they have on the command line."""
    files = set(files)
    found: dict[str, list[str]] = {}
    for one in sorted({*files, *(file.parent for file in files)}):
        if one.stem not in (one.parent.name, "__init__") and one.parent != PurePath("reactor/cli"):
            found.setdefault(one.stem, []).append(str(one))
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_module_and_a_folder_have_a_name_of_their_own() -> None:
    files = (path.relative_to(ROOT) for part in ("bus", "rules", "reactor") for path in (ROOT / part).rglob("*.py"))
    twice = shared_names(files)
    allowed = {*PARTS.split(), *DOMAINS.split()}
    assert {name: places for name, places in twice.items() if name not in allowed} == {}, "find another word"
    assert allowed - twice.keys() == set(), "no longer there twice: take it off the list"


def test_a_name_of_two_folders_or_of_a_folder_and_a_module_is_found() -> None:
    files = ("a/fleet/fleet.py", "a/fleet/x.py", "a/b/x.py", "c/x/__init__.py", "c/fleet/y.py", "reactor/cli/y.py")
    assert shared_names(map(PurePath, files)) == {
        "fleet": ["a/fleet", "c/fleet"], "x": ["a/b/x.py", "a/fleet/x.py", "c/x"],
    }  # fmt: skip


ROW = re.compile(r"^\| ((?:\*\*[^*|,]+\*\*(?:, `\w+`)?)|`[^`|]+`) \| ", re.MULTILINE)
"""A row of the glossary: a word, and the key that has it in rule files; or what is written in code."""


def words_of(glossary: str) -> list[str]:
    return [cell.partition(", ")[0] for cell in ROW.findall(glossary)]


def test_a_row_of_the_glossary_has_one_word_and_no_word_is_in_two() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line for line in glossary.splitlines() if line.startswith(("| **", "| `"))]
    assert [row for row in rows if not ROW.match(row)] == [], "a row for each word"
    assert len(rows) > 120
    assert [word for word, times in Counter(words_of(glossary)).items() if times > 1] == []


def test_a_word_of_the_glossary_that_is_there_twice_is_found() -> None:
    rows = "| **fence** | One. |\n| **stale**, `staleSeconds` | Old. |\n| **fence** | Two. |\n| `Done` | x |\n"
    assert words_of(rows) == ["**fence**", "**stale**", "**fence**", "`Done`"]
    assert words_of("| **acquire request**, **acquire reply** | Both. |\n") == []


def test_what_a_rule_file_names_is_in_the_glossary() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    kinds = [kind.__name__ for kind in KINDS if kind not in INTERNAL]
    sources = [source.__name__ for source in get_args(LoadedSource)]
    missing = [word for word in (*sources, *get_args(Carrier), *kinds) if f"| `{word}` |" not in glossary]
    assert not missing, f"a line in docs/glossary.md: {', '.join(missing)}"


def test_every_state_and_mode_on_the_wire_is_in_the_glossary() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    said = (isolations.Phase, isolations.ZoneStatus, placements.Effect, placements.PurgeMode, placements.OnGraceExpired)
    outcome = Outcome.model_fields["status"].annotation
    words = {word for one in (*said, outcome) for word in get_args(one)} | {mode.value for mode in Mode}
    assert {word for word in words if f"`{word}`" not in glossary} == set()
