"""Targets, patterns over them, templates that make them; label selectors; shares of a whole."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kinds.traffic.apportion import apportion
from rules.rulefile import selectors
from rules.rulefile.targets import (
    BadTarget,
    MissingLabel,
    check_pattern,
    check_target,
    check_template,
    encode_segment,
    fill,
    matches,
)


@pytest.mark.parametrize(
    "text",
    ["cluster/member1", "zone/prod/eu-central-1a", "node/prod/ip-10-0-0-1", "service/east/shop/checkout",
     "workload/member1/default/Deployment/nginx", "custom/x", "custom/payments/psp-latency/é 1"],
)  # fmt: skip
def test_targets_of_the_contract_are_targets(text: str) -> None:
    check_target(text)


@pytest.mark.parametrize(
    "text", ["", "service", "service/a", "service/a/b/c/d", "cluster//", "cluster/", "pod/a", "custom", "/cluster/a"]
)
def test_other_texts_are_no_targets(text: str) -> None:
    with pytest.raises(BadTarget):
        check_target(text)


@pytest.mark.parametrize(
    ("pattern", "target", "expected"),
    [
        ("service/*/shop/check*", "service/east/shop/checkout", True),
        ("service/*/shop/check*", "service/east/pay/checkout", False),
        ("service/*", "service/east/shop/checkout", False),
        ("service/**", "service/east/shop/checkout", True),
        ("**", "custom/x", True),
        ("**/checkout", "service/east/shop/checkout", True),
        ("service/**/checkout", "service/east/shop/checkout", True),
        ("cluster/member?", "cluster/member1", True),
        ("cluster/member?", "cluster/member12", False),
        ("cluster/[a-c]*", "cluster/bee", True),
        ("cluster/[!a-c]*", "cluster/bee", False),
        ("cluster/a.b", "cluster/axb", False),
        ("custom/a[!x]b", "custom/a/b", False),
        ("custom/a?b", "custom/a/b", False),
        ("cluster/Member1", "cluster/member1", False),
    ],
)
def test_patterns_match_segment_by_segment(pattern: str, target: str, expected: bool) -> None:
    check_pattern(pattern)
    assert matches(pattern, target) is expected


@pytest.mark.parametrize("pattern", ["service//x", "cluster/\ud800", "", "cluster/[z-a]", "cluster/[+-9]", "/x"])
def test_patterns_that_can_match_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(BadTarget):
        check_pattern(pattern)


SEGMENT = st.text("abc*?.", min_size=1, max_size=4) | st.sampled_from(["*", "**", "[ab]*", "[!a]"])


def fits(pattern: Sequence[str], target: Sequence[str]) -> bool:
    """True if the pattern matches the target, by a second definition."""
    if not pattern:
        return not target
    if pattern[0] == "**":
        return any(fits(pattern[1:], target[n:]) for n in range(len(target) + 1))
    return bool(target) and fnmatch.fnmatchcase(target[0], pattern[0]) and fits(pattern[1:], target[1:])


@given(
    st.lists(SEGMENT, min_size=1, max_size=5), st.lists(st.text("abc.", min_size=1, max_size=3), min_size=1, max_size=5)
)
def test_a_pattern_means_what_it_says(pattern: list[str], target: list[str]) -> None:
    assert matches("/".join(pattern), "/".join(target)) == fits(pattern, target)


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\n" not in text), st.text(min_size=1, max_size=20))
def test_any_label_makes_exactly_one_segment(one: str, two: str) -> None:
    filled = fill("service/{a}/shop/{b}", {"a": one, "b": two})
    assert len(filled.split("/")) == 4
    check_target(filled)
    assert filled != fill("service/{a}/shop/{b}", {"a": one + "/", "b": two})


def test_a_segment_is_encoded_only_where_it_holds_a_slash() -> None:
    assert encode_segment("100%") == "100%"
    assert encode_segment("a/b%") == "a%2Fb%25"


@given(st.text("ab/%25F", max_size=8), st.text("ab/%25F", max_size=8))
def test_different_texts_are_different_segments(one: str, other: str) -> None:
    assert (encode_segment(one) == encode_segment(other)) == (one == other)
    assert encode_segment("a/b") != encode_segment("a%2Fb")


def test_a_missing_or_empty_label_is_an_error_and_never_an_empty_segment() -> None:
    for labels in ({}, {"b": ""}):
        with pytest.raises(MissingLabel) as caught:
            fill("custom/{b}", labels)
        assert caught.value.label == "b"


@pytest.mark.parametrize(
    "template", ["custom/{", "custom/}", "custom/{}", "custom/{{a}}", "custom/{a b}", "{a}", "pod/{a}"]
)
def test_what_makes_no_target_is_no_template(template: str) -> None:
    with pytest.raises(BadTarget):
        check_template(template)


def test_a_template_says_which_labels_it_takes() -> None:
    assert check_template("service/{cluster}/{k8s.io/ns}/x-{cluster}") == {"cluster", "k8s.io/ns"}


# --- label selectors -----------------------------------------------------------------------------------------------

LABELS = {"app": "web", "tier": "front", "failover.linkerd.io/controlled-by": "linkerd-failover", "empty": ""}


@pytest.mark.parametrize(
    "selector",
    ["app=web", "app==web", "app!=db", "absent!=x", "app in (web, db)", "app notin (db)", "absent notin (x)", "app",
     "!absent", "app=web,tier=front", " app = web , tier ", "failover.linkerd.io/controlled-by=linkerd-failover",
     "empty=", "empty in ()", "app in(web)"],
)  # fmt: skip
def test_labels_are_selected(selector: str) -> None:
    assert selectors.matches(selector, LABELS)


@pytest.mark.parametrize(
    "selector",
    ["app=db", "app!=web", "app in (db)", "app notin (web)", "absent", "!app", "app=web,tier=back", "absent="],
)
def test_labels_are_not_selected(selector: str) -> None:
    assert not selectors.matches(selector, LABELS)


@pytest.mark.parametrize("selector", ["", ",", "app=web,", "a in b", "=x", "a=b=c", "a=(b)", "a>1", "a in (b", "a b"])
def test_what_is_no_selector_is_refused_and_never_selects_everything(selector: str) -> None:
    with pytest.raises(selectors.BadSelector):
        selectors.parsed(selector)


# --- shares of a whole ---------------------------------------------------------------------------------------------


@given(st.integers(0, 1_000_000), st.lists(st.integers(0, 1_000_000), max_size=64))
def test_parts_are_whole_and_sum_to_the_whole(total: int, shares: list[int]) -> None:
    parts = apportion(total, shares)
    assert len(parts) == len(shares)
    assert all(part >= 0 for part in parts)
    assert sum(parts) == (total if sum(shares) else 0)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(0, 1000))
def test_a_backend_with_a_share_gets_something_while_there_is_enough(shares: list[int], more: int) -> None:
    parts = apportion(len(shares) + more, shares)
    assert all(part > 0 for part, share in zip(parts, shares, strict=True) if share > 0)
    assert all(part == 0 for part, share in zip(parts, shares, strict=True) if share == 0)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 1000), min_size=2, max_size=10))
def test_a_larger_share_never_gets_less(total: int, shares: list[int]) -> None:
    parts = apportion(total, sorted(shares, reverse=True))
    assert parts == sorted(parts, reverse=True)
