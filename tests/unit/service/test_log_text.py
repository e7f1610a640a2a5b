"""Lines of the log, for people and for machines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
import stamina

from reactor.runtime.telemetry import start_logging


@contextmanager
def written(style: Literal["logfmt", "json"], level: str = "info") -> Iterator[io.StringIO]:
    """Log output of the block, once it is over."""
    out = io.StringIO()
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    lines = start_logging(style, level, out)
    try:
        yield out
        lines.close()
    finally:
        root.handlers[:], level_before = before
        root.setLevel(level_before)


def line(style: Literal["logfmt", "json"], message: str, **extra: Any) -> str:
    with written(style) as out:
        logging.getLogger("test").info(message, extra=extra)
    return out.getvalue().strip()


def test_a_try_that_is_followed_by_another_is_no_line() -> None:
    """The outcome tells what failed in the end; what the library says of each try has arguments and no words."""
    with written("logfmt", "debug") as out:
        for attempt in stamina.retry_context(on=ValueError, attempts=2, wait_initial=0, wait_jitter=0):
            with attempt:
                if attempt.num == 1:
                    raise ValueError("busy")
    assert out.getvalue() == ""


@pytest.mark.parametrize("style", ["logfmt", "json"])
def test_a_line_has_plain_text_and_no_key_without_a_value(style: Literal["logfmt", "json"]) -> None:
    said = line(style, "weights set: checkout 1→0", reason=None, rule="checkout")
    assert "1→0" in said
    assert "reason" not in said
    assert "None" not in said


def test_weights_read_as_in_the_status_and_for_machines_stay_a_mapping() -> None:
    weights = {"checkout": 0, "checkout-west": 1}
    assert 'what="checkout=0 checkout-west=1"' in line("logfmt", "SetWeights", what=weights)
    assert json.loads(line("json", "SetWeights", what=weights))["what"] == weights
