"""Output channels of the demo's sentences."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.live import Live

from reactor.demo.display import Plain, TerminalDisplay, display
from tests.clock import HandClock


class Tty(io.StringIO):
    """A terminal's side of a file."""

    def isatty(self) -> bool:
        return True


def test_lines_carry_the_time_since_the_start() -> None:
    clock, out = HandClock(100), io.StringIO()
    plain = Plain(clock, out)
    plain.title("demo")
    clock.seconds += 12.34
    plain.say("fault", "the demo breaks checkout")
    assert out.getvalue() == "demo\n  12.3s  fault    the demo breaks checkout\n"


def test_a_pipe_gets_the_current_state_every_two_seconds_and_only_when_it_has_changed() -> None:
    clock, out = HandClock(100), io.StringIO()
    plain = Plain(clock, out)
    for step in range(61):
        clock.seconds = 100 + step / 10
        plain.live("3 s left" if step < 40 else "0 s left", "all ok")
    assert out.getvalue().splitlines() == [
        "   2.0s  now      3 s left | all ok",
        "   4.0s  now      0 s left | all ok",
    ]


@pytest.mark.parametrize(("out", "term"), [(io.StringIO(), "xterm"), (Tty(), "dumb")])
def test_what_is_no_real_terminal_gets_no_escape_codes(
    out: io.StringIO, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    with display(HandClock(100), out) as shown:
        shown.title("demo")
        shown.say("action", "moved")
        shown.live("now")
    assert out.getvalue() == "demo\n   0.0s  action   moved\n"


def test_a_terminal_gets_a_line_that_is_painted_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Tty()
    with display(HandClock(100), out) as shown:
        assert isinstance(shown, TerminalDisplay)
        shown.live("3 s left")
        shown.live("2 s left")
        shown.say("action", "moved")
    painted = out.getvalue()
    assert "3 s left" in painted
    assert "2 s left" in painted
    assert "\x1b[2K" in painted  # the line before is taken away


def test_brackets_of_a_message_are_shown_as_they_are() -> None:
    out = io.StringIO()
    with Live(console=Console(file=out), auto_refresh=False, transient=True) as live:
        TerminalDisplay(HandClock(100), live).title("curl '[::1]' [bold]")
    assert "curl '[::1]' [bold]" in out.getvalue()
