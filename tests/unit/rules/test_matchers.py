"""Label matchers, as Alertmanager reads them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.rulefile.matchers import BadMatcher, Matchers

PAGE = {"alertname": "Down", "severity": "page", "team": "web", "dots.and-dashes": "x", "größe": "ä b"}


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", " { } ", "severity=page", 'severity="page"', '{severity="page"}', 'severity = "page" , team="web"',
        'severity=~"critical|page"', 'severity!="critical"', 'severity!~"c.*"', "severity=page,", '"severity"="page"',
        'absent=""', 'absent!="x"', 'absent=~".*"', 'absent!~".+"', "dots.and-dashes=x", '{"größe"="ä b"}',
        'größe=~"ä.b"', 'severity=~"p.+",team=~"(?i)WEB"',
    ],
)  # fmt: skip
def test_what_alertmanager_matches_matches(text: str) -> None:
    assert Matchers.parse(text).matches(PAGE)


@pytest.mark.parametrize(
    "text",
    ['severity="critical"', 'severity=~"pag"', 'severity=~"age"', 'severity!="page"', 'severity!~".*"', 'absent=~".+"',
     'severity="page",team="db"', 'severity="Page"', 'absent!=""'],
)  # fmt: skip
def test_what_alertmanager_does_not_match_does_not(text: str) -> None:
    assert not Matchers.parse(text).matches(PAGE)


@pytest.mark.parametrize(
    "text",
    ["severity", "=x", "severity==page", "{severity=page", "severity=page}", "a=b c=d", "a=b,,c=d", ",a=b", 'a="b',
     "severity~page", "a='b'", 'a=~"("', 'a=~"(?=x)"', 'a=~"\\1"', "a=", "{{a=b}}", "a=`b`", 'a=~"\ud800"'],
)  # fmt: skip
def test_what_is_no_matcher_is_told(text: str) -> None:
    with pytest.raises(BadMatcher):
        Matchers.parse(text)


def test_a_label_with_half_a_character_is_matched_like_any_other() -> None:
    assert not Matchers.parse('a=~"x+"').matches({"a": "\ud800"})
    assert Matchers.parse('a!~"x+"').matches({"a": "\ud800"})


def test_escapes_in_quotes_are_those_of_alertmanager() -> None:
    assert Matchers.parse(r'a="say \"hi\" \\ \n"').matches({"a": 'say "hi" \\ \n'})
    assert Matchers.parse(r'a=~"\\d+\\.\\d"').matches({"a": "12.3"})
    assert Matchers.parse('a="x,y=z}"').matches({"a": "x,y=z}"})


def test_a_hostile_expression_takes_no_time() -> None:
    assert not Matchers.parse('a=~"(x+x+)+y"').matches({"a": "x" * 5000})


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), min_size=1, max_size=4))
def test_any_labels_can_be_written_in_quotes(labels: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    text = "{" + ",".join(f"{quoted(name)}={quoted(value)}" for name, value in labels.items()) + "}"
    matchers = Matchers.parse(text)
    assert [(matcher.label, matcher.value) for matcher in matchers.all] == list(labels.items())
    assert matchers.matches(labels)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadMatcher):
        Matchers.parse(text).matches({"a": "b"})
