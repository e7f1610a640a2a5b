"""Rule files that commands write: text that our reader and every other one reads the same."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import yaml

from rules.rulefile.model import API_VERSION

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARACTERS = 120  # of the 128 that a name may have: the rest is for a number
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*")
_NO_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def named(wanted: str, taken: Container[str]) -> str:
    """Give a name that is not taken, as near to the wanted one as names of rules may be."""
    name = _NOT_IN_NAMES.sub("-", wanted).strip("-._")[:_NAME_CHARACTERS].rstrip("-._") or "rule"
    tried, number = name, 1
    while tried in taken:
        number += 1
        tried = f"{name}-{number}"
    return tried


class _Dumper(yaml.SafeDumper):
    """Quotes each text that some reader of YAML might take for something else."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's own signature
        """Write everything out: our reader takes no aliases."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - as above
        """Lists are indented further than their key, as in most YAML files."""
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT
    style = None if plain else "|" if "\n" in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def rule_file(sources: Sequence[Mapping[str, Any]], rules: Sequence[Mapping[str, Any]]) -> str:
    """Give a rule file."""
    parts = {"sources": list(sources), "rules": list(rules)}
    return as_yaml({"apiVersion": API_VERSION} | {key: value for key, value in parts.items() if value})


def as_yaml(value: object, *, compact: bool = False) -> str:
    """Give YAML; compact: mappings and lists that hold nothing but words and numbers are on one line."""
    style = None if compact else False
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True, default_flow_style=style
    )
    return text
