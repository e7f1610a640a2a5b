"""Fuzzing targets: each function takes any bytes, and raises where a promise is broken.

A reader may refuse with its own error, which people read: it says what is wrong, in one line that can be printed or be
made so. Anything else (another exception, an answer that makes no sense) is a finding. So is what takes longer than ten
seconds or more than a gigabyte: the fuzzer counts both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from bus import message_admission
from bus.envelope import decode, encode
from bus.errors import Malformed
from bus.subjects import key, token
from reactor.alerts.alert import Alert
from reactor.runtime.visible import visible
from reactor.webhook.body import BadBody, read_body
from rules import loader
from rules.core.errors import InvalidFiles, InvalidHistory
from rules.rehearsal import history
from rules.rehearsal.rule_tests import suite_loader as testreader
from rules.rulefile import jsonpath, selectors
from rules.rulefile.matchers import BadMatcher, Matchers
from rules.rulefile.promql import range_seconds
from rules.rulefile.targets import BadTarget, check_pattern, check_target, check_template, encode_segment, fill, matches
from rules.rulefile.template import substitute
from tests.fuzz.edits import edited

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = {"alertname": "Down", "a/b": "x", "service": "a/b", "odd": "%2F*?[a]\x1b\u202e", "long": "y" * 5000}
RULES = "apiVersion: reactor/v1\nrules: [{name: r, kind: Notification, match: '**', message: m}]\n"
EDITS = b"\x01"
"""With this first byte the others edit a seed."""
_LEGAL_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,43}\Z")


@cache
def _seeds(target: str, names: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted((Path(__file__).parent / "seeds" / target).glob(names))]


def text_of(data: bytes) -> str:
    """Give a text, with lone surrogates in it: JSON can carry them."""
    return data.decode("utf-8", "surrogateescape")


def tokens(data: bytes) -> None:
    """Tokens of subjects are legal, short, and different for different texts."""
    one, _, other = text_of(data).partition("\n")
    assert _LEGAL_TOKEN.match(token(one))
    assert (token(one) == token(other)) == (one == other)
    assert (encode_segment(one) == encode_segment(other)) == (one == other)
    assert "/" not in encode_segment(one)
    assert key(one, other).count(".") == 1
    assert visible(one).isprintable()


def matchers(data: bytes) -> None:
    """Matchers, label selectors, ranges of PromQL and JSONPaths: read, or refused."""
    text = text_of(data)
    try:
        found = Matchers.parse(text)
    except BadMatcher as error:
        assert str(error)
    else:
        found.matches(LABELS)
    try:
        selectors.matches(text, LABELS)
    except selectors.BadSelector as error:
        assert str(error)
    assert range_seconds(text) >= 0
    try:
        jsonpath.read_jsonpath(text).text_of({"a": [{"b": 1}, LABELS], "labels": LABELS})
    except (ValueError, jsonpath.NoValue) as error:
        assert str(error)


def templates(data: bytes) -> None:
    """Templates of targets make targets, patterns match or not, and texts are replaced word by word."""
    text, _, rest = text_of(data).partition("\n")
    labels = {**LABELS, "x": rest or "x"}
    try:
        names = check_template(text)
    except BadTarget as error:
        assert str(error)
    else:
        if names <= labels.keys():
            check_target(fill(text, labels))
    try:
        check_pattern(text)
    except BadTarget as error:
        assert str(error)
    else:
        matches(text, rest)
        matches(text, "service/east/shop/checkout")
    substitute(text, labels)


def yaml(data: bytes) -> None:
    """Rule files, rule tests and histories: read, or refused with file, line and column."""
    text = text_of(data)
    try:
        reading = loader.examine([("f.yaml", text)])
        reading.rule_set()
        reading.hints()
    except InvalidFiles as error:
        assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in error.problems)
    try:
        testreader.load_suite(text, "f_test.yaml", lambda _: RULES)
    except InvalidFiles as error:
        assert error.problems
    try:
        history.load_history(history.lines_of(text), "f.jsonl")
    except InvalidHistory as error:
        assert str(error)


def webhooks(data: bytes) -> None:
    """Bodies of posts: refused as a whole with 4xx, or read; what is journaled of an alert can be read again."""
    if data[:1] == EDITS:
        data = json.dumps(edited(json.loads(_seeds("webhooks", "post")[0]), data[1:])).encode()
    try:
        body = read_body(data)
    except BadBody as error:
        assert error.code in (400, 413, 422)
        assert str(error)
        return
    for journaled in body.alerts:
        again = Alert.read(json.loads(journaled))
        assert again.journal() == journaled
        assert visible(again.detail).isprintable()
    assert all(body.quarantined)


def messages(data: bytes) -> None:
    """Messages of the bus: refused as Malformed, or read; and then they survive being written again."""
    if data[:1] == EDITS and len(data) > 1:
        seeds = _seeds("messages", "[A-Z]*")
        subject_of, _, seed = seeds[data[1] % len(seeds)].partition(b"\n")
        data = subject_of + b"\n" + json.dumps(edited(json.loads(seed), data[2:])).encode()
    head, _, body = data.partition(b"\n")
    subject = head.decode("utf-8", "replace")
    try:
        event = decode(body)
    except Malformed as error:
        assert str(error)
        return
    message_admission.message_refusal(subject, event.data)
    written = encode(event.data, id="1", source="/fuzz", time=NOW)
    assert decode(written).data == event.data


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    one.__name__: one for one in (tokens, matchers, templates, yaml, webhooks, messages)
}
