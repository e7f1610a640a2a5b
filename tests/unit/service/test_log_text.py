"""What a line of the log says, for people and for machines."""

from __future__ import annotations

import io
import json
import logging
from typing import Any, Literal

import pytest

from reactor.runtime.telemetry import start_logging


def line(style: Literal["logfmt", "json"], message: str, **extra: Any) -> str:
    out = io.StringIO()
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    lines = start_logging(style, "info", out)
    try:
        logging.getLogger("test").info(message, extra=extra)
        lines.close()
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
    return out.getvalue().strip()


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
