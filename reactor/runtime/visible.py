"""Makes texts of others safe to show: a terminal carries out an escape sequence, and a newline fakes a row."""

from __future__ import annotations

import json


def visible(text: str) -> str:
    r"""Give it in one line; what cannot be printed as an escape: `\x1b`, `\n`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def visible_lines(text: str) -> str:
    """Give each of its lines so. Only for text whose own newlines are ours."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(text: str) -> str:
    """Give JSON text that says the same; what cannot be printed is escaped in its strings."""
    return "\n".join(line if line.isprintable() else "".join(map(_json_char, line)) for line in text.split("\n"))


def _json_char(char: str) -> str:
    if char.isprintable():
        return char
    return r"\u007f" if char == "\x7f" else json.dumps(char)[1:-1]  # json leaves DEL as it is
