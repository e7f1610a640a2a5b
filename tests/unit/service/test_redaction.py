"""Credentials in log lines and errors: patterns find them, and are tried only where a word of theirs is in the text."""

from __future__ import annotations

import re
import string
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from reactor.runtime.redaction import _HEADER, _SECRET, _USERINFO, redact, without_credentials
from tests.examples import many

WORDS = (
    "Authorization", "proxy-authorization", "x-api-key", "X-Auth-Token", "x--secret", "x-", "password", "token",
    "secret", "routing_key", "api_key", "_key", "Bearer ", "GenieKey ", "https://", "nats://user:pass@", "://", "@",
    "u:p@",
)  # fmt: skip
MARKS = (*":=\\'\",}{", ": ", " ", "\n", "***", "hunter2", "1→0")
SAME_TO_A_PATTERN = {"i": "ıİ", "s": "ſ", "k": "\N{KELVIN SIGN}"}
"""Characters that (?i) takes for a letter, besides its upper case."""


@st.composite
def spelled(draw: st.DrawFn) -> str:
    """A word of the patterns, with letters of either case, and of those that (?i) takes for the same."""
    word = draw(st.sampled_from(WORDS))
    return "".join(draw(st.sampled_from((c, c.upper(), *SAME_TO_A_PATTERN.get(c.lower(), "")))) for c in word)


PIECES = st.one_of(st.sampled_from(WORDS), spelled(), st.sampled_from(MARKS), st.text(max_size=8))


@many(200)
@given(st.lists(PIECES, max_size=12).map("".join))
@example("Authorızation: Bearer x")
@example("toKen=x")
@example("nginx-1: https://shop/")
def test_looking_for_words_first_takes_out_the_same(text: str) -> None:
    headers = _USERINFO.sub(r"\1***@", _HEADER.sub(r"\1***", text))
    assert without_credentials(text) == headers
    assert redact(text) == _SECRET.sub(r"\1***", headers)


def test_what_a_pattern_takes_for_a_letter_folds_to_it_but_for_i() -> None:
    """Of all characters there are: else a word could be there for its pattern, and not for the look before it."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for letter in set(string.ascii_lowercase) - {"i"} | set("-_"):
        assert [char for char in re.findall(f"(?i){letter}", every) if letter not in char.casefold()] == []
