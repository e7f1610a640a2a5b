"""Foreign text reaches a terminal as text: it moves no cursor, hides nothing and adds no row."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from bus.messages import Health, Observation, Pause, Resume
from reactor.cli.explain import _text
from reactor.cli.main import cli
from reactor.cli.shared.printing import as_json, as_table, as_yaml, say
from reactor.cli.shared.status_rows import row, table
from reactor.cli.status import _pause
from reactor.runtime.telemetry import _Formatter
from reactor.runtime.visible import visible
from reactor.views.pausing import pause_plan
from rules.core.group import Group, Holding, NoState, Paused
from rules.kinds.traffic.state import TrafficState
from rules.rehearsal.causal_chain import CausalChain

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ODD = {
    "ESC": ("\x1b[31m", r"\x1b[31m"),
    "C1": ("\x9b31m", r"\x9b31m"),
    "DEL": ("\x7f", r"\x7f"),
    "override": ("\u202e", r"\u202e"),
    "isolate": ("\u2066", r"\u2066"),
    "row": ("\ncheckout  Healthy", r"\ncheckout  Healthy"),
    "return": ("\rcheckout", r"\rcheckout"),
    "line": ("\u2028", r"\u2028"),
    "surrogate": ("\ud800", r"\ud800"),
}
each = pytest.mark.parametrize(("raw", "shown"), ODD.values(), ids=ODD)
"""Foreign text, and the form in which it is shown."""


@each
def test_what_cannot_be_printed_is_shown_as_an_escape(raw: str, shown: str) -> None:
    assert visible(f"a{raw}b") == f"a{shown}b"


def test_what_can_be_printed_stays() -> None:
    assert visible("Größe 1 → 0, 店 🛑 C:\\x") == "Größe 1 → 0, 店 🛑 C:\\x"


@each
def test_a_cell_of_a_table_stays_in_its_cell(raw: str, shown: str) -> None:
    _, line = as_table([{"rule": "r", "detail": f"a{raw}", "to": [f"b{raw}"]}]).splitlines()

    assert f"a{shown}" in line
    assert line.endswith(f"b{shown}")


@each
def test_a_status_has_one_line_for_each_group(raw: str, shown: str) -> None:
    group = Group("checkout", "east/shop", TrafficState(), held=Holding("Paused", f"why{raw}", NOON))

    head, line = table([group], NOON)
    assert head.startswith("RULE")
    assert line.endswith(f"Paused: why{shown}")
    assert row(group, NOON)["STATE"] == "Held"


@each
def test_a_pause_is_shown_in_one_line_with_the_plan(raw: str, shown: str) -> None:
    group = Group("@pauses", "checkout", NoState(), paused=Paused(f"ann{raw}", f"why{raw}", NOON))

    told = _pause("checkout", Paused(f"ann{raw}", f"why{raw}", NOON), NOON)
    assert f"by ann{shown} since" in told
    assert told.endswith(f"why{shown}")
    _, line = pause_plan("resume", "*", [group]).splitlines()
    assert f"paused by ann{shown} since" in line
    assert line.endswith(f"why{shown}")


@each
def test_an_explanation_shows_the_words_of_an_alert_as_text(raw: str, shown: str) -> None:
    found = CausalChain(
        {"id": "r/o/1", "action": "SetWeights"}, (f"12:00 service/checkout Unhealthy: summary{raw}",), (), (), (), (),
        (f"Failed {raw}",),
    )  # fmt: skip

    lines = _text(found).splitlines()

    assert f"  12:00 service/checkout Unhealthy: summary{shown}" in lines
    assert f"  Failed {shown}" in lines


@each
def test_a_line_of_the_log_is_one_line_of_text(raw: str, shown: str) -> None:
    record = logging.makeLogRecord({"msg": f"m{raw}", "levelname": "INFO", "target": f"t{raw}"})

    for style in ("logfmt", "json"):
        line = _Formatter(style).format(record)
        assert line.isprintable(), line
    assert json.loads(line)["target"] == f"t{raw}"


def test_a_line_of_the_log_keeps_what_can_be_printed() -> None:
    record = logging.makeLogRecord({"msg": "weights 1→0 now", "levelname": "INFO"})

    assert 'msg="weights 1→0 now"' in _Formatter("logfmt").format(record)


@each
def test_json_and_yaml_for_pipelines_hold_the_same_text_escaped(raw: str, shown: str) -> None:
    text = as_json({"detail": raw})

    assert json.loads(text) == {"detail": raw}
    assert text.replace("\n", "").isprintable()
    assert as_yaml({"detail": raw}).replace("\n", "").isprintable()


@each
def test_whatever_a_command_says_of_an_error_is_text(raw: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"reactor: {raw}", err=True)

    assert capsys.readouterr().err.replace("\n", "").isprintable()


@each
def test_no_target_holds_what_cannot_be_printed(raw: str, shown: str) -> None:
    with pytest.raises(ValidationError, match="target"):
        Observation(target=f"service/check{raw}out", status=Health.HEALTHY, observed_at=NOON)


@each
@pytest.mark.parametrize("place", ["by", "reason", "rule"])
def test_no_command_holds_what_cannot_be_printed(raw: str, shown: str, place: str) -> None:
    words: dict[str, Any] = {"rule": "checkout", "by": "ann", "reason": "CHG-1", "observed_at": NOON}

    for kind in (Pause, Resume):
        with pytest.raises(ValidationError, match=place):
            kind(**{**words, place: f"a{raw}b"})


def test_a_command_takes_the_words_of_every_language() -> None:
    said = Pause(rule="checkout", by="Zoë Ångström", reason="保守作業 🛑 “CHG-1”", observed_at=NOON)

    assert said.reason == "保守作業 🛑 “CHG-1”"


@each
@pytest.mark.parametrize("option", ["--by", "--comment"])
def test_the_command_line_names_the_option_and_the_character(raw: str, shown: str, option: str) -> None:
    if "\ud800" in raw:
        pytest.skip("no terminal hands over a lone surrogate as text")
    words = {"--by": "ann", "--comment": "CHG-1"} | {option: f"a{raw}b"}

    said = CliRunner().invoke(cli, ["pause", "*", "--yes", *(part for pair in words.items() for part in pair)])

    assert said.exit_code == 2, said.output
    assert option in said.output
    assert f"U+{ord(raw[0]):04X}" in said.output
    assert said.output.replace("\n", "").isprintable()
