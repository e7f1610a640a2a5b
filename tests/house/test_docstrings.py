"""A docstring begins with what the thing is or does: a noun phrase, or a verb in the imperative; a bool with "True if".

One that begins with a question word, or with "so long", "as it is", "there is none", leaves unit, range and meaning to
be guessed. The same holds for strings below fields and constants: schemas and pages show many of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("reactor", "bus", "rules", "tests", "benchmarks", "scripts")
"""All folders with code."""
OPENING = re.compile(
    r"(who|whose|whom|what|which|whether|where|when|how|why)(ever)?\b"
    r"|(for |by )?so (long|many|much|often|far|soon|late|few|short)\b"
    r"|for ever\b|as it is\b|there (is|are) (none|no|nothing)\b|from now on\b",
    re.IGNORECASE,
)
QUOTED = re.compile(rf"""["'](?:\s|\\.)*(?:{OPENING.pattern})""", re.IGNORECASE)
"""The beginning of a string that may be a vague docstring: only modules with one are parsed."""
INSTEAD = "write a noun phrase or a verb in the imperative, with unit and range; of a bool: True if …"


def modules() -> list[Path]:
    """The modules of FOLDERS, and the Python scripts among them whose names have no suffix."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    return [path for path in files if path.suffix == ".py" or (not path.suffix and _is_script(path))]


def _is_script(path: Path) -> bool:
    first = path.read_bytes().split(b"\n", 1)[0]
    return first.startswith(b"#!") and b"python" in first


def vague(text: str) -> list[str]:
    """Each docstring, and each string below a field or constant, that does not begin with what the thing is."""
    if not QUOTED.search(text):
        return []
    return [
        f"line {node.lineno}: {' '.join(node.value.value.split())[:80]!r}: {INSTEAD}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if OPENING.match(node.value.value.strip())
    ]


def test_docstrings_begin_with_what_the_thing_is() -> None:
    paths = modules()
    assert {path.relative_to(ROOT).parts[0] for path in paths} == set(FOLDERS)
    assert {str(path.relative_to(ROOT)): hits for path in paths if (hits := vague(path.read_text("utf-8")))} == {}


def written(opening: str) -> Iterator[str]:
    """Code with a docstring in each of the places that are read."""
    yield f'"""{opening} it is."""\n'
    yield f'class A:\n    """{opening} it is."""\n'
    yield f'class _A:\n    x: int\n    """{opening} it is."""\n'
    yield f'def _f(self):\n    """\n    {opening} it is.\n    """\n'
    yield f'async def f():\n    """{opening} it is."""\n'
    yield f'WAIT = 1\n"""{opening} it is."""\n'


@pytest.mark.parametrize("opening", ["What", "Whose", "Whether", "How", "Where", "Whatever", "So long", "For so long"])
def test_a_vague_opening_is_found(opening: str) -> None:
    assert [len(vague(code)) for code in written(opening)] == [1] * 6


@pytest.mark.parametrize("opening", ["True if", "Seconds that", "Number of", "Some", "Whole", "Howitzers, and what"])
def test_a_plain_opening_is_none(opening: str) -> None:
    assert [vague(code) for code in written(opening)] == [[]] * 6
