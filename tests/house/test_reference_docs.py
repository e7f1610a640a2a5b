"""docs/reference/ says what the models, the reasons and the command line say: all of it, and nothing else."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from reactor.cli.main import COMMANDS, cli
from reactor.settings import model as settings
from rules.core.reasons import SENTENCES, Because, Held
from rules.loader import schema
from scripts import reference_examples as examples

ROOT = Path(__file__).parents[2]
HINT = "run: .venv/bin/python scripts/gen-rule-reference.py"
KARMADA = "WorkloadFailover-karmada"
"""It shows keys of Karmada's that mean nothing here, and for each there is a warning."""
LONG = ("query", "ruleArn", "lua", "cel", "matchers")
"""Keys whose examples are too long for a table."""
PAGES = ("rule-file.md", "settings.md", "reasons.md", "cli.md")


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


@pytest.mark.parametrize("path", examples.files(), ids=lambda path: path.name)
def test_each_file_that_examples_are_from_can_be_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule files as `reactor check` reads them, without a warning or a hint; rule tests pass; settings load."""
    for name in [name for name in os.environ if name.startswith("REACTOR_")]:
        monkeypatch.delenv(name)
    if examples.is_settings(path):
        assert settings.load(path)
        return
    words = ["test", str(path)] if examples.is_test(path) else ["check", "--strict", str(path)]
    done = CliRunner().invoke(cli, [one for one in words if path.stem != KARMADA or one != "--strict"])
    assert done.exit_code == 0, done.output


def test_every_key_of_the_settings_is_on_the_page_with_an_example() -> None:
    text = page("settings.md")
    whole = settings.Settings.model_json_schema()
    for part in (whole, *whole["$defs"].values()):
        for key in part.get("properties", {}):
            assert f"| `{key}` |" in text, key


@pytest.mark.parametrize("name", ["rule-file.md", "settings.md"])
def test_every_key_that_is_no_part_of_its_own_has_an_example(name: str) -> None:
    """A part has a table below, and a long list is in its file only."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \| *\|", page(name).replace("\\|", "¦"), re.MULTILINE)
    assert [key for key, of_type in rows if "](#" not in of_type and key not in LONG] == []
