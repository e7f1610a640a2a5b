"""An example of each key for docs/reference/, out of whole files: docs/examples/keys, which tests load and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from reactor.settings import model as settings
from rules import loader
from rules.rehearsal.rule_tests import tester

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "examples" / "keys"
LONGEST = 72
"""Characters of an example in a table. A longer one is shown in its file only."""
SETTINGS = "reactor"
"""First part of the names of settings files."""
Found = dict[tuple[str, str], list[Any]]
"""Values by model and key."""


def files() -> list[Path]:
    """The files that the examples are from."""
    return sorted(FOLDER.glob("*.yaml"))


def is_test(path: Path) -> bool:
    """True if it is a rule test."""
    return path.stem.endswith("_test")


def is_settings(path: Path) -> bool:
    """True if it is a settings file."""
    return path.stem.startswith(SETTINGS)


def of(cls: type[BaseModel], key: str, default: Any = None) -> str:
    """One short example of a key as YAML on one line, rather not its default; empty where only the file has room."""
    values = found().get((cls.__name__, key), [])
    if not values:
        raise KeyError(f"{cls.__name__}.{key} has no example: write one into a file of docs/examples/keys")
    shortest = min(values, key=lambda value: (value == default, len(in_a_line(value))))
    text = in_a_line(shortest)
    return text if len(text) <= LONGEST else ""


def in_a_line(value: Any) -> str:
    """Give YAML in flow style."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n...\n").strip()


@cache
def found() -> Found:
    """Values of all files, by the model that has read them."""
    out: Found = {}
    for path in files():
        text = path.read_text("utf-8")
        for read, raw in _read(path, text):
            _walk(read, raw, out)
    return out


def _read(path: Path, text: str) -> Iterator[tuple[Any, Any]]:
    raw = yaml.safe_load(text)
    if is_settings(path):
        yield settings.load(path), raw
    elif is_test(path):
        suite = tester.load_suite(text, path.name, lambda name: (FOLDER / name).read_text("utf-8"))
        yield suite.tests, raw["tests"]
    else:
        loaded = loader.load_rules([(path.name, text)])
        yield from ((getattr(loaded, part), raw.get(part, [])) for part in ("rules", "sources", "guards"))


def _walk(read: Any, raw: Any, out: Found) -> None:
    """Go through what was read and what is written side by side."""
    if isinstance(read, BaseModel) and isinstance(raw, Mapping):
        for name, field in type(read).model_fields.items():
            key = field.alias or name
            if key in raw:
                for cls in type(read).__mro__:
                    if name in getattr(cls, "model_fields", ()):
                        out.setdefault((cls.__name__, key), []).append(raw[key])
                _walk(getattr(read, name), raw[key], out)
    elif isinstance(read, Mapping) and isinstance(raw, Mapping):
        for key in read:
            _walk(read[key], raw.get(key), out)
    elif isinstance(read, tuple | list) and isinstance(raw, list):
        for one, written in zip(read, raw, strict=False):
            _walk(one, written, out)
