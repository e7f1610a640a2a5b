"""Each test that tests/README.md names is there, and each row of its tables of tests names one; and what `make test`
needs to know of test files holds for them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import LONGEST

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "README.md").read_text("utf-8")
NAME = re.compile(r"`(?:tests/)?([\w/]+\.py)::(test_\w+)(?:\[([^`]*)\])?`")
TABLES = re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _named(tables: list[str]) -> list[str]:
    """The rows of all tables whose last column is called `tests` or `test`."""
    return [
        row
        for head, _, *rows in (table.splitlines() for table in tables)
        if _cells(head)[-1] in ("tests", "test")
        for row in rows
    ]


@cache
def _functions(path: Path) -> dict[str, ast.AST]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def missing(page: str) -> list[str]:
    """The tests that this text names and that are not there, and parameters that their file does not have."""
    out = []
    for file, test, parameter in NAME.findall(page):
        path = TESTS / file
        if not path.is_file() or test not in _functions(path):
            out.append(f"{file}::{test}")
        elif parameter and parameter not in path.read_text("utf-8"):
            out.append(f"{file}::{test}[{parameter}]")
    return out


def test_every_test_that_the_page_names_is_there() -> None:
    assert missing(PAGE) == []


@pytest.mark.parametrize("row", _named(TABLES))
def test_every_row_names_a_test(row: str) -> None:
    assert NAME.search(_cells(row)[-1]), row


def test_what_is_not_there_is_found() -> None:
    here = "house/test_named_tests.py::"
    there = f"`{here}test_every_row_names_a_test` `tests/{here}test_every_row_names_a_test[row]`"
    assert missing(there) == []
    wrong = [f"{here}test_gone", f"{here}test_every_row_names_a_test[no " + "such]", "house/test_no.py::test_x"]
    assert missing(" ".join(f"`{name}`" for name in wrong)) == wrong
    assert len(_named(TABLES)) > 40


def test_the_files_that_begin_first_are_there() -> None:
    assert [name for name in LONGEST if not (TESTS / "e2e" / f"{name}.py").is_file()] == []


def test_tests_that_share_what_their_file_starts_run_in_one_worker() -> None:
    """`make test` gives each end-to-end test to any worker, but those of one xdist_group to one."""
    files = [path for folder in ("e2e", "integration", "contract") for path in (TESTS / folder).rglob("test_*.py")]
    apart = [
        str(path.relative_to(TESTS))
        for path in files
        if 'scope="module"' in (text := path.read_text("utf-8")) and "xdist_group" not in text
    ]
    assert [path for path in apart if not path.startswith("integration/actions/")] == []


def _limits(page: str) -> list[str]:
    """The first cells of the table below the heading Limits."""
    table = re.search(r"(?:^\|.*\n)+", page.partition("\n## Limits\n")[2], re.MULTILINE)
    assert table
    return [_cells(row)[0].replace("](../docs/", "](") for row in table[0].splitlines()[2:]]


def test_every_limit_has_its_default_its_metric_and_a_test_that_exceeds_it() -> None:
    operations = (TESTS.parent / "docs/operations.md").read_text("utf-8")
    assert _limits(PAGE) == _limits(operations)
    section = operations.partition("\n## Limits\n")[2].partition("\n## ")[0]
    rows = [_cells(line) for line in section.splitlines() if line.startswith("|")][2:]
    unseen = [row[0] for row in rows if len(row) != 4 or not row[1] or not re.search(r"reactor_\w+|the same", row[3])]
    assert unseen == []


def test_every_limit_that_a_post_is_refused_at_is_in_the_table() -> None:
    """As `reactor_webhook_limits_exceeded_total` names them."""
    sources = "".join(file.read_text("utf-8") for file in (TESTS.parent / "reactor/webhook").glob("*.py"))
    named = {*re.findall(r'limit="(\w+)"', sources)}
    operations = (TESTS.parent / "docs/operations.md").read_text("utf-8").partition("\n## Limits\n")[2]
    assert len(named) >= 9
    assert {name for name in named if name not in operations} == set()


def test_each_folder_of_tests_is_in_a_table() -> None:
    files = {path.relative_to(TESTS) for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    folders = {path.parts[0] for path in files if len(path.parts) > 1 and not path.parts[0].startswith(".")}
    assert folders == {*re.findall(r"^\| `tests/(\w+)` \|", PAGE, re.MULTILINE)}
