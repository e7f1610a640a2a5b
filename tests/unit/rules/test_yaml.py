"""YAML within limits, read as YAML 1.2 reads it."""

from __future__ import annotations

from typing import Any

import pytest

from rules.rulefile.yaml import BYTES_MAX, DEPTH_MAX, NODES_MAX, read_yaml


def value(text: str) -> Any:
    document, problems = read_yaml(text, "f.yaml")
    assert problems == []
    return document.value


def problem(text: str) -> str:
    _, problems = read_yaml(text, "f.yaml")
    assert len(problems) == 1
    return str(problems[0])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("1:30", "1:30"), ("012", 12),
        ("0x1F", 31), ("0o17", 15), ("1_000", "1_000"), ("-5", -5), ("+5", 5), ("1.5", 1.5), (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True), ("False", False), ("null", None), ("~", None), ("'5'", "5"), ('"true"', "true"),
        ("2026-01-01", "2026-01-01"), ("!!str 5", "5"), ("1.2.3", "1.2.3"), ("Null", None), ("nUll", "nUll"),
        ("9" * 30, 1e30), ("9" * 60, "9" * 60),
    ],
)  # fmt: skip
def test_scalars_are_those_of_the_core_schema(text: str, meant: object) -> None:
    got = value(text)
    assert got == meant
    assert type(got) is type(meant)


def test_everything_has_a_position() -> None:
    document, _ = read_yaml("a:\n  - b: 1\n    c: [x, y]\n", "f.yaml")
    assert document.places["a", 0, "c", 1] == (3, 12)
    assert document.keys["a", 0, "c"] == (3, 5)


def test_a_thousand_nested_brackets_do_not_end_the_process() -> None:
    for text in ("[" * 100_000, "{a: " * 100_000, "- " * 50_000):
        assert f"nested deeper than {DEPTH_MAX} levels" in problem(text)


def test_depth_is_limited_just_so() -> None:
    assert value("[" * DEPTH_MAX + "]" * DEPTH_MAX)
    assert problem("[" * (DEPTH_MAX + 2) + "]" * (DEPTH_MAX + 2))


def test_aliases_are_refused_so_there_are_no_bombs() -> None:
    assert problem("a: &x [1]\nb: *x").startswith("f.yaml:2:4: b: alias *x")


def test_the_number_of_nodes_is_limited() -> None:
    assert "nodes; split the file" in problem("[" + "a," * (NODES_MAX + 1) + "]")


def test_the_size_is_limited() -> None:
    assert "larger than 1 MiB" in problem("#" + "x" * BYTES_MAX)


def test_tags_are_refused() -> None:
    for text in ("!!python/name:os.system x", "!include x", "!!binary aGk=", "!!set {a}", "!<tag:x> [1]"):
        assert "is not read" in problem(text)


def test_a_key_that_is_there_twice_is_told_with_its_first_place() -> None:
    assert problem("a: 1\nb:\n  c: 1\n  c: 2\n") == "f.yaml:4:3: b.c: the key is given twice, first in line 3"


def test_all_keys_that_are_there_twice_are_told() -> None:
    assert len(read_yaml("a: 1\na: 2\nb: 1\nb: {c: 1, c: 2}\n", "f.yaml")[1]) == 3


@pytest.mark.parametrize("text", [".nan", ".inf", "-.Inf", "1e999", "-1.5e400"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    assert "is not a number that can be used here" in problem(f"a: {text}")


def test_a_key_that_is_no_text_is_refused() -> None:
    assert "a key must be plain text" in problem("? [a]\n: b")


def test_text_that_is_no_yaml_is_told_with_its_place() -> None:
    assert problem("a: b: c") == "f.yaml:1:5: not YAML: mapping values are not allowed in this context"
    assert "not YAML" in problem("a: \x00")
    assert "not YAML" in problem("a: '\ud800'")


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert value("\ufeffa: 1") == {"a": 1}


def test_comments_and_blank_files_are_empty() -> None:
    for text in ("", "# only a comment\n", "\n\n"):
        assert "the file is empty" in problem(text)
