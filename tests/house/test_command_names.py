"""Pages name commands that there are, by the names that they have now; the glossary has them all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reactor.cli.main import COMMANDS, cli
from reactor.cli.shared.old_names import OLD

ROOT = Path(__file__).parents[2]
WITHOUT_OUTPUT = {
    "init": "it writes rule files; -o FILE is the old name of --output-file",
    "demo": "its output is a story that goes on until Ctrl-C",
    "run": "its output is the log, with a format of its own: logFormat",
    "watch": "its output is a screen with keys",
}
"""Commands without `-o`, and why."""
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "decisions" not in path.parts),
]  # fmt: skip
SPAN = re.compile(r"`reactor ([a-z][^`]*)`")


def wrong(words: list[str]) -> str:
    """Mistake in a command line that a page shows; empty: none."""
    command: click.Command = cli
    path = ["reactor"]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            if len(path) == 1 and words[0] in OLD:
                return f"reactor {words[0]} is an old name of reactor {' '.join(OLD[words[0]])}"
            return f"{' '.join(path)} has no command {words[0]!r}"
        path.append(words.pop(0))
        command = inner
    known = {option for one in command.params for option in one.opts} | {"-h", "--help"}
    unknown = [word for word in words if re.fullmatch(r"--[a-z-]+", word) and word not in known]
    return f"{' '.join(path)} has no option {unknown[0]}" if unknown else ""


def shown(text: str) -> Iterator[list[str]]:
    for span in SPAN.findall(re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        yield span.split()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_command_in_a_sentence_exists_with_its_options(path: Path) -> None:
    found = {" ".join(words): wrong([*words]) for words in shown(path.read_text("utf-8"))}
    assert {words: what for words, what in found.items() if what} == {}


def test_the_glossary_has_all_commands_as_help_has_them() -> None:
    rows = re.findall(r"^\| `reactor ([a-z-]+)` \| (.+) \|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    assert rows == list(COMMANDS.items())


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command that does something, with its name."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    for name in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        yield from leaves(inner, (*path, name))


def formats(command: click.Command) -> set[str]:
    """The formats of `-o`, as `--help` lists them; empty: it has none."""
    for option in command.params:
        if "-o" in option.opts and "--output" in option.opts and not getattr(option, "hidden", False):
            return set(re.findall(r"[a-z]+", option.make_metavar(click.Context(command))))
    return set()


def test_every_command_prints_json_and_yaml_or_has_a_reason() -> None:
    found = dict(leaves(cli))
    assert {name for name, command in found.items() if not formats(command) >= {"json", "yaml"}} == {*WITHOUT_OUTPUT}
    assert all(formats(command) <= {"table", "text", "json", "yaml", "github", "helm"} for command in found.values())


def test_what_does_not_exist_is_found() -> None:
    assert wrong(["zone", "isolate", "RULE", "ZONE", "--force"]) == ""
    assert wrong(["fleet"]) == "reactor fleet is an old name of reactor members"
    assert wrong(["zone", "burn"]) == "reactor zone has no command 'burn'"
    assert wrong(["status", "--wach"]) == "reactor status has no option --wach"
