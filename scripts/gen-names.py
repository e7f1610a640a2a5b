#!/usr/bin/env python3
"""Write docs/reference/names.md: what the classes of bus/, rules/ and reactor/ are.

Run it with .venv/bin/python scripts/gen-names.py after a change there: tests/house/test_names.py fails when they
differ.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "names.md"
PACKAGES = ("bus", "rules", "reactor")
HEAD = """<!-- Written by scripts/gen-names.py: change the source, not this page. -->
# Names in the code

For those who work on the code: every public class, where it is, and what it is. The words in their names, and the
names on the bus, are in the [glossary](../glossary.md), and the content of each message in [events](../events.md).
"""
Classes = Mapping[str, Sequence[tuple[str, str]]]


@cache
def classes() -> Classes:
    """Give the public classes: name to (file, first line of its docstring), in the order of the alphabet."""
    found: dict[str, list[tuple[str, str]]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    file = path.relative_to(ROOT).as_posix()
                    found.setdefault(node.name, []).append((file, _first(ast.get_docstring(node) or "")))
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def all_classes() -> Iterator[str]:
    """Give the name of every class, also the private ones and those inside of others."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield node.name


def aliases() -> Iterator[tuple[str, str, ast.expr]]:
    """Give the public names of types that are no classes: name, file, and the type. No type variables."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        pass
                    case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                        pass
                    case _:
                        continue
                if name[0].isupper() and not name.isupper() and not ast.unparse(value).startswith("TypeVar("):
                    yield name, path.relative_to(ROOT).as_posix(), value


def _first(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.match(r".*?[.!?](?=\s|$)", paragraph)
    return (sentence.group() if sentence else paragraph).replace("|", "\\|")


def page() -> str:
    """Give the whole page."""
    return "\n".join([HEAD, *_classes()])


def _classes() -> Iterator[str]:
    for package in PACKAGES:
        yield from (f"## {package}/\n", "| class | file | what it is |", "| --- | --- | --- |")
        for name, places in classes().items():
            for file, meaning in places:
                if file.startswith(f"{package}/"):
                    yield f"| `{name}` | [{file}](../../{file}) | {meaning} |"
        yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
