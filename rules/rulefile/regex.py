"""RE2, quiet and bounded: the one way in which a rule file's expressions are compiled."""

from __future__ import annotations

from functools import lru_cache

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # a bad expression is told once, with its line, not on stderr
_OPTIONS.max_mem = 8 << 20


class BadExpression(ValueError):
    """RE2 does not take the expression: says why."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re2._Regexp[str]:
    """Give the compiled expression. Raises BadExpression."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except UnicodeEncodeError as error:
        raise BadExpression(f"{pattern!r} is not an RE2 expression: it holds a lone surrogate") from error
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise BadExpression(f"{pattern!r} is not an RE2 expression: {reason}") from error


def full_match(pattern: str, text: str) -> bool:
    """True if the expression matches the whole text, whatever characters it has. Raises BadExpression."""
    # RE2 reads UTF-8, which has no lone surrogates; JSON has.
    return compiled(pattern).fullmatch(text.encode("utf-8", "replace").decode()) is not None
