"""Each declaration of a module is read by the product: in its own module, where it is imported, or as `module.name`.

test_dead_code.py compares names alone, so that a function that only tests call is hidden by another one of its name.
Here each name is followed through imports to the module that declares it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.house.test_dead_code import FOR_TESTS, PLAIN, ROOT, trees

Key = tuple[str, str]
"""Module and name."""


def declared(module: str, tree: ast.Module) -> Iterator[tuple[Key, int]]:
    """Functions and classes that no decorator registers, and constants: each with its line."""
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                decorators = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
                if {ast.unparse(one).rpartition(".")[2] for one in decorators} <= PLAIN:
                    yield (module, node.name), node.lineno
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield (module, name), node.lineno


def imported(tree: ast.Module) -> dict[str, Key]:
    """Each name that a module imports: where it is from. A module that is imported has its package as its module."""
    found: dict[str, Key] = {}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {one.asname or one.name: (module, one.name) for one in names}
            case ast.Import(names=names):
                found |= {one.asname or one.name: ("", one.name) for one in names}
    return found


def read(module: str, tree: ast.Module) -> Iterator[Key]:
    """Names that a module reads, of itself and of others. What a function or class reads of itself is no use."""
    known = imported(tree)
    finds_modules = "import_module" in known or "importlib" in known  # an attribute of any module, such as `KIND`
    for statement in tree.body:
        own = getattr(statement, "name", "")
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) if name in known:
                    yield known[name]
                case ast.Name(id=name, ctx=ast.Load()) if name != own:
                    yield module, name
                case ast.Attribute(attr=name) if finds_modules:
                    yield "", name
                case ast.Attribute(attr=name, value=ast.Name() | ast.Attribute() as value):
                    said = _dotted(value)
                    package, stem = known.get(said, ("", said))
                    yield f"{package}.{stem}".strip("."), name
                case ast.Constant(value=str(name)):  # getattr(module, "run")
                    yield "", name


def _dotted(node: ast.expr) -> str:
    """`a.b` of a name or attribute, `?.b` of an attribute of anything else: ast.unparse, much faster."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name, value=value):
            return f"{_dotted(value)}.{name}"
    return "?"


def unread(files: Mapping[str, ast.Module]) -> list[str]:
    """Declarations that no module reads. What is imported to be exported again is followed to its source."""
    again = {(module, name): key for module, tree in files.items() for name, key in imported(tree).items()}
    used: set[Key] = set()
    for first in (key for module, tree in files.items() for key in read(module, tree)):
        key: Key | None = first
        while key is not None and key not in used:
            used.add(key)
            key = again.get(key)
    return [
        f"{module}:{line}: {name}"
        for module, tree in files.items()
        for (_, name), line in declared(module, tree)
        if (module, name) not in used and ("", name) not in used and not (name.startswith("__") or name == "_")
    ]


def test_what_only_tests_import_is_deleted() -> None:
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): tree for path, tree in trees()
    }
    assert [line for line in unread(files) if line.split()[-1] not in FOR_TESTS.split()] == []


def test_a_function_that_hides_behind_another_of_its_name_is_found() -> None:
    files = {
        "a": "def load(): pass\ndef used(): return used()\ndef run(): pass\n",
        "b": "LIMIT = 1\ndef load(): pass\nclass Lost: pass\n",
        "c": "from b import LIMIT\nfrom b import load as load\n",
        "d": "import a\nfrom c import LIMIT, load as fetch\nfetch(a, LIMIT)\ngetattr(a, 'run')\n",
    }
    assert unread({name: ast.parse(text) for name, text in files.items()}) == ["a:1: load", "a:2: used", "b:3: Lost"]
