"""Completion and mistakes while a file is written: yaml-language-server with the schema of `reactor schema`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import rules
from reactor.cli.main import cli
from tests.integration.editors.language_server import Editor

pytestmark = pytest.mark.long

LIBRARY = Path(rules.__file__).parent / "library"
BEGUN = """apiVersion: reactor/v1
rules:
  - name: checkout
    kind: TrafficFailover
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    tolerationSeconds: 10
    """


@pytest.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    """One that has the schemas beside the files."""
    for what in ("rules", "test"):
        (tmp_path / f"{what}.json").write_text(CliRunner().invoke(cli, ["schema", what]).output)
    async with Editor(tmp_path) as editor:
        yield editor


def written(folder: Path, text: str, *, schema: str = "rules", name: str = "f.yaml") -> Path:
    """A file as `reactor schema --help` says: the schema is named in its first line."""
    file = folder / name
    file.write_text(f"# yaml-language-server: $schema={(folder / f'{schema}.json').as_uri()}\n{text}")
    return file


async def test_an_editor_finds_no_fault_with_the_library(editor: Editor, tmp_path: Path) -> None:
    for path in sorted(LIBRARY.glob("*.yaml")):
        schema = "test" if path.stem.endswith("_test") else "rules"
        file = written(tmp_path, path.read_text(), schema=schema, name=path.name)
        assert await editor.open(file) == [], path.name


@pytest.mark.parametrize(
    ("wrong", "line", "says"),
    [
        ("    tolerationSecond: 5", 7, "tolerationSecond"),
        ("    recoverySeconds: soon", 7, "Incorrect type. Expected \"number\""),
        ("    onAllDown: Nothing", 7, "Hold"),
        ("    recoverySeconds: -1", 7, "minimum"),
    ],
)  # fmt: skip
async def test_an_editor_shows_a_mistake_at_its_place(
    editor: Editor, tmp_path: Path, wrong: str, line: int, says: str
) -> None:
    found = await editor.open(written(tmp_path, BEGUN.rstrip() + f"\n{wrong}\n"))
    assert [one["range"]["start"]["line"] for one in found] == [line]
    assert says in found[0]["message"]


async def test_an_editor_shows_what_a_key_means_and_which_keys_there_are(editor: Editor, tmp_path: Path) -> None:
    file = written(tmp_path, BEGUN)
    await editor.open(file)
    shown = await editor.hover(file, 6, 8)
    assert "The time for which a target must be bad without a break before the rule acts" in shown
    offered = await editor.completions(file, 7, 4)
    assert {"recoverySeconds", "backends", "onAllDown", "guards", "steps"} <= offered.keys()
    assert "resourceSelectors" not in offered, "of another kind of rule"
    assert "tolerationSeconds" not in offered, "stands there already"
    assert "The time for which a target must be Healthy again" in offered["recoverySeconds"]


async def test_an_editor_knows_rule_tests_too(editor: Editor, tmp_path: Path) -> None:
    begun = """apiVersion: reactor/v1
ruleFiles: [a.yaml]
tests:
  - name: t
    expect:
      - held: NoHealthySecond
"""
    file = written(tmp_path, begun, schema="test", name="a_test.yaml")
    [found] = await editor.open(file)
    assert found["range"]["start"]["line"] == 6
    assert "NoHealthySecondary" in await editor.completions(file, 6, 14)
