"""RE2, quiet and bounded: the one way in which a rule file's expressions are compiled."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re2

MEMORY_MAX = 8 << 20
"""Bytes that one expression may take up."""


class BadExpression(ValueError):
    """RE2 does not take the expression: says why."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re2._Regexp[str]:
    """Give the compiled expression. Raises BadExpression."""
    import re2  # 3 MB: only for who has expressions

    try:
        return re2.compile(pattern, _options())
    except UnicodeEncodeError as error:
        raise BadExpression(f"{pattern!r} is not an RE2 expression: it holds a lone surrogate") from error
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise BadExpression(f"{pattern!r} is not an RE2 expression: {reason}") from error


@cache
def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # a bad expression is told once, with its line, not on stderr
    options.max_mem = MEMORY_MAX
    return options


def escaped(text: str) -> str:
    """Give the expression that matches this text alone."""
    import re2

    expression: str = re2.escape(text)
    return expression


def full_match(pattern: str, text: str) -> bool:
    """True if the expression matches the whole text, whatever characters it has. Raises BadExpression."""
    # RE2 reads UTF-8, which has no lone surrogates; JSON has.
    return compiled(pattern).fullmatch(text.encode("utf-8", "replace").decode()) is not None
