"""Every function, class, method and constant of the product is used by the product: what only tests use is deleted.

By names: a declaration is used where its name is read anywhere in bus/, rules/ or reactor/, also as an attribute or in
a string (`getattr`, a table of commands). Decorated declarations are registered by what decorates them, but for PLAIN.
A field, also one of the settings, is used where it is read as an attribute or named in a string or a pattern: to be
given a value is no use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALLED_BY_LIBRARIES = """
convert list_commands get_command format_commands readinto ignore_aliases model_post_init emit
settings_customise_sources collect
"""
"""Methods that click, io, PyYAML, pydantic, logging and prometheus_client call by their name."""
PLAIN = {
    "abstractmethod", "asynccontextmanager", "cache", "cached_property", "classmethod", "contextmanager", "dataclass",
    "lru_cache", "property", "runtime_checkable", "staticmethod",
}  # fmt: skip
"""Decorators that register nothing."""
READ_ELSEWHERE = """
model_config ConnectionCls generator_url
"""
"""Fields that pydantic and urllib3 read, and those of records and journaled posts that people read."""
FOR_TESTS = """
MemoryBus own_port patch_type
"""
"""bus/testing and the emulated API server are used by tests of their own."""


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for package in ("bus", "rules", "reactor"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, ast.parse(path.read_text("utf-8"))


def declared(tree: ast.Module, nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Functions, classes and methods that no decorator registers, and constants of the module."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _is_plain(node):
            yield node.name, node.lineno
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from ((one.id, one.lineno) for one in targets if isinstance(one, ast.Name))


def _is_plain(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    decorators = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {ast.unparse(one).rpartition(".")[2] for one in decorators} <= PLAIN


def fields(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Names that classes declare by an assignment: fields, settings, members of enumerations."""
    for node in nodes:
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            match line:
                case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                    yield name, line.lineno


def read(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Names of fields that are read."""
    for node in nodes:
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()):
                yield name
            case ast.MatchClass(kwd_attrs=names):
                yield from names
    yield from _words(nodes)


def _words(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The words of all strings that are no docstrings."""
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from re.findall(r"\w+", node.value)


def used(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
    yield from _words(nodes)


def dead(files: dict[str, ast.Module]) -> list[str]:
    walked = {path: [*ast.walk(tree)] for path, tree in files.items()}
    names = {name for nodes in walked.values() for name in used(nodes)}
    values = {name for nodes in walked.values() for name in read(nodes)}
    return [
        f"{path}:{line}: {name}"
        for path, tree in files.items()
        for declarations, known in ((declared(tree, walked[path]), names), (fields(walked[path]), values))
        for name, line in declarations
        if name not in known and not re.fullmatch(r"__\w+__|_", name)
    ]


def test_what_nothing_uses_is_deleted() -> None:
    found = dead({path.relative_to(ROOT).as_posix(): tree for path, tree in trees()})
    known = {*CALLED_BY_LIBRARIES.split(), *READ_ELSEWHERE.split(), *FOR_TESTS.split()}
    assert [line for line in found if line.split()[-1] not in known] == []
    assert known - {line.split()[-1] for line in found} == set(), "no longer dead: take it off the list"


def test_a_dead_declaration_is_found() -> None:
    text = (
        "USED = 1\nDEAD = 2\n\ndef dead():\n    return USED\n\n"
        "class Kept:\n    def lost(self):\n        pass\n\nKept()\n"
    )
    assert dead({"x.py": ast.parse(text)}) == ["x.py:4: dead", "x.py:8: lost", "x.py:2: DEAD"]


def test_a_dead_class_property_and_setting_are_found() -> None:
    text = (
        "@dataclass(frozen=True)\nclass Lost:\n    pass\n\n"
        "class Settings:\n    read: int = 1\n    unread: int = 2\n\n"
        "    @property\n    def unasked(self):\n        return self.read\n\n"
        "    @validator\n    def registered(self):\n        pass\n\nSettings(unread=3)\n"
    )
    assert dead({"x.py": ast.parse(text)}) == ["x.py:2: Lost", "x.py:10: unasked", "x.py:7: unread"]
