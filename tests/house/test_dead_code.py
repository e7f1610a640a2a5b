"""Every function, class, method and constant of the product is used by the product: what only tests use is deleted.

By names: a declaration is used where its name is read anywhere in bus/, rules/ or reactor/, also as an attribute or in
a string (`getattr`, a table of commands). Decorated declarations are registered by what decorates them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALLED_BY_LIBRARIES = """
convert list_commands get_command format_commands readinto ignore_aliases model_post_init emit
"""
"""Methods that click, io, PyYAML, pydantic and logging call by their name."""
FOR_TESTS = """
MemoryBus own_port lateness
"""
"""bus/testing, the emulated API server and the audit's checker are used by tests of their own."""


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for package in ("bus", "rules", "reactor"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, ast.parse(path.read_text("utf-8"))


def declared(tree: ast.Module, nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Functions, classes and methods without a decorator, and constants of the module."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.decorator_list:
            yield node.name, node.lineno
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from ((one.id, one.lineno) for one in targets if isinstance(one, ast.Name))


def used(nodes: Sequence[ast.AST]) -> Iterator[str]:
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in docs:
                yield from re.findall(r"\w+", text)


def dead(files: dict[str, ast.Module]) -> list[str]:
    walked = {path: [*ast.walk(tree)] for path, tree in files.items()}
    names = {name for nodes in walked.values() for name in used(nodes)}
    return [
        f"{path}:{line}: {name}"
        for path, tree in files.items()
        for name, line in declared(tree, walked[path])
        if name not in names and not re.fullmatch(r"__\w+__|_", name)
    ]


def test_what_nothing_uses_is_deleted() -> None:
    found = dead({path.relative_to(ROOT).as_posix(): tree for path, tree in trees()})
    known = {*CALLED_BY_LIBRARIES.split(), *FOR_TESTS.split()}
    assert [line for line in found if line.split()[-1] not in known] == []
    assert known - {line.split()[-1] for line in found} == set(), "no longer dead: take it off the list"


def test_a_dead_declaration_is_found() -> None:
    text = (
        "USED = 1\nDEAD = 2\n\ndef dead():\n    return USED\n\n"
        "class Kept:\n    def lost(self):\n        pass\n\nKept()\n"
    )
    assert dead({"x.py": ast.parse(text)}) == ["x.py:4: dead", "x.py:8: lost", "x.py:2: DEAD"]
