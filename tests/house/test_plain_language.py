"""Help, messages, descriptions and pages name who does what: none has a word that hides it.

Write short sentences whose subject is a thing or "you", in the present tense and with the words of the field. Code in
backticks and fenced blocks are as they are: a message of the log is quoted as it is printed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from reactor.cli.main import COMMANDS, cli
from rules.loader import schema

ROOT = Path(__file__).parents[2]
INSTEAD = {
    r"nobody('s)?|no one": "name what is missing: no process, no person, not known",
    r"somebody('s)?|someone('s)?": "name the subject: a person, another writer, a source",
    r"whoever|anybody('s)?|everybody('s)?": "name the subject: a client, a user, every process",
    r"stands?|stood": "is, is stored, is recorded, applies, the current state",
    r"for ever": "without end",
    r"hears? of|heard of": "gets, receives, has an observation",
    r"borne": "ignored, tolerated",
    r"goes? by|going by|went by": "uses",
    r"no moment": "invalid time",
    r"no trace": "no history",
    r"at home": "on primary",
    r"taken as bad": "considered unhealthy",
    r"none is kept": "none configured, none recorded",
    r"pass(es|ed|ing)? over": "skip",
    r"burns?": "fails",
    r"put aside|puts aside": "quarantined",
    r"voices?": "publisher, signal",
    r"of the house": "requirements",
    r"the way of": "data flow",
    r"vouch\w*": "confirm",
    r"afresh|anew": "again, restart, recreate",
    r"in hands": "in flight",
    r"(say|says|said) yes|say no": "confirm, approve, reject",
    r"leash|let off": "switched to Enforce",
    r"speaks? of": "names, matches, is about",
    r"what comes of|came of": "the result",
}  # fmt: skip
WORDS = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b")
"""For text in lower case: to look for both cases takes four times as long."""


def found(text: str) -> list[str]:
    """Each word with the words around it and what to write instead."""
    out = []
    for hit in WORDS.finditer(text.lower()):
        instead = next(advice for words, advice in INSTEAD.items() if re.fullmatch(words, hit[0]))
        around = " ".join(text[max(0, hit.start() - 40) : hit.end() + 30].split())
        out.append(f"{hit[0]!r} in “…{around}…”: write {instead}")
    return out


def prose(page: str) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]+`", "`code`", re.sub(r"^( *)```.*?^\1```$", "", page, flags=re.MULTILINE | re.DOTALL))


def pages() -> list[Path]:
    docs = sorted((ROOT / "docs").rglob("*.md"))
    roots = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*roots, ROOT / "tests" / "README.md", *docs]


def copied() -> list[Path]:
    """The scripts of pages, and what operators apply or copy. Golden files have the names of rule tests."""
    folders = {
        "reactor": ("*.js", "*.html"),
        "deploy": ("*.yml", "*.yaml", "*.json", "*.conf", "*.cfg", "*.tpl", "*.txt", "*.service"),
        "docs": ("*.yaml",),
        "rules/library": ("*.yaml",),
    }
    found = {path for folder, names in folders.items() for name in names for path in (ROOT / folder).rglob(name)}
    tests = {path for path in found if path.stem.endswith("_test") and path.is_relative_to(ROOT / "rules")}
    return [ROOT / "docker-compose.yml", *sorted(found - tests)]


def test_a_page_names_who_does_what() -> None:
    assert {
        str(path.relative_to(ROOT)): hits for path in pages() if (hits := found(prose(path.read_text("utf-8"))))
    } == {}


def test_what_is_shown_or_copied_names_who_does_what() -> None:
    assert {str(path.relative_to(ROOT)): hits for path in copied() if (hits := found(path.read_text("utf-8")))} == {}


def helps(command: click.Command, *words: str) -> Iterator[tuple[str, str]]:
    yield " ".join(words), CliRunner().invoke(cli, [*words, "--help"]).output
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from helps(inner, *words, name)


def test_help_names_who_does_what() -> None:
    shown = dict(helps(cli))
    assert len(shown) > len(COMMANDS) + 15
    assert {words: hits for words, text in shown.items() if (hits := found(text))} == {}


def test_a_list_of_commands_has_whole_sentences() -> None:
    cut = [
        line
        for text in dict(helps(cli)).values()
        for line in text.splitlines()
        if re.fullmatch(r"  [a-z]+  .*\.\.\.", line)
    ]
    assert cut == [], "shorten the first sentence of the command's docstring"


@cache
def may_hide(path: Path) -> bool:
    """True if a module has one of the words anywhere: only these modules are parsed. Lines of a text, and strings that
    follow each other, are read as one."""
    text = re.sub(r"""(?s)["']\s*[fr]*["']|\\.""", " ", path.read_text("utf-8").lower())
    return WORDS.search(" ".join(text.split())) is not None


def messages(path: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings: f-strings in one piece, with `{}` for what is put in."""
    tree = ast.parse(path.read_text("utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements | parts:
            yield node.value


def modules() -> list[Path]:
    """All that says something: on the command line, in logs, metrics, statuses, and errors."""
    return [path for part in ("bus", "rules", "reactor") for path in sorted((ROOT / part).rglob("*.py"))]


def said(path: Path) -> list[str]:
    """The words in what a module says, but for identifiers: attributes, keys, seeds."""
    return [hit for text in messages(path) if not text.isidentifier() for hit in found(text)]


def test_a_message_names_who_does_what() -> None:
    assert {str(path.relative_to(ROOT)): hits for path in modules() if may_hide(path) and (hits := said(path))} == {}


@cache
def notes(path: Path) -> Sequence[str]:
    """The docstrings and comments of a module."""
    text = path.read_text("utf-8")
    docs = [
        " ".join(node.value.value.split())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [*docs, *(token.string for token in tokens if token.type == tokenize.COMMENT)]


def files_of_tests() -> list[Path]:
    """The tests and all that they use."""
    return sorted((ROOT / "tests").rglob("*.py"))


def test_docstrings_and_comments_name_who_does_what() -> None:
    paths = [*modules(), *files_of_tests()]
    hits = [
        f"{path.relative_to(ROOT)}: {hit}"
        for path in paths
        if may_hide(path)
        for text in notes(path)
        for hit in found(text)
    ]
    assert not hits, "\n".join(hits)


def test_the_name_of_a_test_says_who_does_what() -> None:
    test = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
    functions = [(path, name) for path in files_of_tests() for name in test.findall(path.read_text("utf-8"))]
    assert len(functions) > 3000
    assert {str(path): hits for path, name in functions if (hits := found(name.replace("_", " ")))} == {}


def tools() -> list[Path]:
    """Scripts and benchmarks, which maintainers run."""
    return [path for part in ("benchmarks", "scripts") for path in sorted((ROOT / part).rglob("*.py"))]


def test_a_script_or_benchmark_names_who_does_what() -> None:
    hits = [
        f"{path.relative_to(ROOT)}: {hit}"
        for path in tools()
        if may_hide(path)
        for hit in (*(hit for text in notes(path) for hit in found(text)), *said(path))
    ]
    assert not hits, "\n".join(hits)


def descriptions(part: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Each description in a JSON Schema, and where it is."""
    if isinstance(part, Mapping):
        if isinstance(part.get("description"), str):
            yield at, part["description"]
        for key, inside in part.items():
            yield from descriptions(inside, f"{at}.{key}")
    elif isinstance(part, list):
        for number, inside in enumerate(part):
            yield from descriptions(inside, f"{at}[{number}]")


def test_descriptions_of_the_rule_file_name_who_does_what() -> None:
    described = dict(descriptions(schema()))
    assert len(described) > 300
    assert {at: hits for at, text in described.items() if (hits := found(text))} == {}


@pytest.mark.parametrize(
    "text",
    ["nobody knows", "Somebody's pause", "the weights that stand", "it waits for ever", "a signal heard of late"],
)
def test_the_words_are_found(text: str) -> None:
    assert len(found(f"It is so: {text}.")) == 1
    assert found("The standard understands outstanding bodies, and forever21 burnt.") == []


@pytest.mark.parametrize(
    "code",
    [
        'def f():\n    """It goes\n    by what it sees."""',
        '"""It goes \\\nby what it sees."""',
        "x = 'it goes ' 'by what it sees'",
        "x = (\n    f'it goes {1} times, and goes '\n    f'by what it sees'\n)",
        r"x = 'All:\nIt goes by what it sees'",
        "x = 1  # it goes by what it sees",
    ],
)
def test_words_of_a_module_are_found_across_lines_and_strings(code: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(code, "utf-8")
    assert may_hide(module)
    assert len([hit for text in (*notes(module), *messages(module)) for hit in found(text)]) == 1


def test_code_is_no_prose() -> None:
    assert found(prose("see `nobody answers`\n\n```\nfor ever\n```\n\nand go on")) == []
    assert found(prose("```sh\nls\n```\n\nit stands\n")) != []
