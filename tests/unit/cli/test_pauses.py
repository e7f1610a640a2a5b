"""Text of `reactor status` about a pause that ends by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reactor.cli.pause import _meant
from reactor.cli.shared.status_rows import row
from reactor.runtime.durations import duration
from reactor.runtime.errors import SettingsError
from reactor.views.pausing import pause_plan, resumption_seen
from rules.core.group import Group, NoState, Paused
from rules.engine.pauses import PAUSES
from rules.kinds.traffic.state import TrafficState
from rules.rehearsal.simulation import at


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.2, "0s"), (-5, "0s"), (59.6, "1m"), (600, "10m"), (5400, "1h30m"), (93_784, "1d2h3m4s")]
)
def test_times_are_shown_as_they_are_written(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(("until", "left"), [(605, "9m55s"), (None, "")])
def test_a_paused_rule_shows_how_long(until: float | None, left: str) -> None:
    paused = Paused("ann", "upgrade", at(5), at(until) if until is not None else None)
    line = row(Group("web", "east/shop/TrafficSplit/web", TrafficState(), paused=paused), at(10))
    assert (line["STATE"], line["LEFT"]) == ("Paused", left)


def test_what_a_resume_leaves_paused_is_said_before_and_after() -> None:
    stop, mine = Paused("ann", "INC-7", at(5), pattern="*"), Paused("ben", "upgrade", at(6), pattern="web")
    both = Group("web", "east/shop/TrafficSplit/web", TrafficState(), paused=stop, also_paused=(mine,))
    assert pause_plan("resume", "web", [both]).splitlines() == [
        "resume 1 rule matching 'web': web",
        f"  web is {stop.words}: it goes on, `reactor resume '*'` ends it",
        f"  web is {mine.words}",
    ]
    standing = [Group(PAUSES, "*", NoState(), paused=stop)]
    assert resumption_seen([*standing, both], at(9), "web") is None
    left = replace(both, also_paused=())
    assert resumption_seen([*standing, left], at(9), "web") == f"resumed web; still {stop.words}"
    assert resumption_seen([replace(both, paused=None, also_paused=())], at(9), "*") == "resumed *"


def test_a_name_that_no_rule_has_is_an_error_with_near_names() -> None:
    groups = [Group("checkout", "a", TrafficState()), Group("cart", "b", TrafficState())]
    with pytest.raises(SettingsError, match=r"no rule is called 'chekout'; did you mean checkout\?"):
        _meant(groups, "chekout")
    assert _meant(groups, "c*") == groups
