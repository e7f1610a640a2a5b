"""What `reactor status` says of a pause that ends by itself."""

from __future__ import annotations

import pytest

from reactor.cli.pause import _meant
from reactor.cli.shared.status_rows import row
from reactor.runtime.durations import duration
from reactor.runtime.errors import SettingsError
from rules.core.group import Group, Paused
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


def test_a_name_that_no_rule_has_is_an_error_with_near_names() -> None:
    groups = [Group("checkout", "a", TrafficState()), Group("cart", "b", TrafficState())]
    with pytest.raises(SettingsError, match=r"no rule is called 'chekout'; did you mean checkout\?"):
        _meant(groups, "chekout")
    assert _meant(groups, "c*") == groups
