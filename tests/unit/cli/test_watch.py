"""`reactor watch`: what fits the screen, what keys do, and when what is shown counts as old."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.text import Text

from bus.messages import Approve, Pause
from reactor.cli.screen.dialog import Dialog, Verb
from reactor.cli.screen.item_lines import Item, acts, bar, blocks, items
from reactor.cli.screen.keyboard import named
from reactor.cli.screen.ordering import made
from reactor.cli.screen.screen_layout import Parts, screen
from reactor.cli.screen.watched import STALE_SECONDS, Watched
from reactor.views.pending import request_of
from rules.core.group import Group
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import Event, backends, healthy, route, step, the_rule, unhealthy

DOWN: list[Event] = [route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=10)]
ENTER, ESCAPE = "\r", "\x1b"


def listed(mode: str = "Enforce", *, now: float = 12, name: str = "web") -> Item:
    rule = the_rule(name=name, backends=backends("a", "b"), tolerationSeconds=10, recoverySeconds=20, mode=mode)
    group: Group | None = None
    for event in DOWN:
        group = step(rule, group, event[0], event).group
    group = step(rule, group, now).group
    [item] = items([group], {rule.name: rule}, at(now))
    return item


def typed(dialog: Dialog, found: list[Item], *keys: str) -> Dialog:
    for key in keys:
        dialog.press(key, found)
    return dialog


def drawn(found: list[Item], chosen: int, *, height: int = 24, rows: int = 9) -> list[str]:
    row = {
        "at": "2026-01-01T00:00:00Z", "outcome": {"status": "Done"}, "mode": "Enforce", "action": "SetWeights",
        "rule": "r" * 60, "object": "o" * 60, "means": "m" * 60, "because": "",
    }  # fmt: skip
    parts = Parts(
        Text("title"), [Text("notice " + "n" * 200)], found, blocks(found, chosen, at(12), 80, glyphs="█░"), chosen, 7,
        acts([row] * rows, 80), [Text("said"), Text("help")],
    )  # fmt: skip
    return screen(parts, 80, height).plain.split("\n")


# --- the picture ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("height", [4, 10, 24, 50])
@pytest.mark.parametrize("chosen", [0, 19, 39])
def test_any_number_of_items_fits_80_columns_with_the_chosen_one_and_the_help_in_sight(
    height: int, chosen: int
) -> None:
    found = [listed(name=f"rule-{number}") for number in range(40)]
    lines = drawn(found, chosen, height=height)
    assert len(lines) == height
    assert all(Text(line).cell_len <= 80 for line in lines)
    assert lines[-1] == "help"
    if height >= 24:
        assert any(line.startswith(f"> rule-{chosen} ") for line in lines)
        assert sum("SetWeights" in line for line in lines) >= 3, "recent actions keep their place"


def test_a_window_is_a_bar_against_its_length_with_what_is_left_and_what_follows() -> None:
    lines = drawn([listed(now=12)], 0)
    assert "COUNTING DOWN (1)" in lines
    assert "    ████░░░░░░░░░░░░░░░░   8.0s of 10.0s left, unhealthy" in lines
    assert any(line.startswith("    then web moves traffic away from ") for line in lines)
    assert [bar(passed, 10, "#.").count("#") for passed in (0, 5, 10, 11)] == [0, 10, 20, 20]


def test_what_waits_for_approval_comes_first_and_what_is_well_is_not_listed() -> None:
    waiting, counting = listed("Approve", now=21, name="z"), listed(now=12, name="a")
    assert (waiting.heading, counting.heading) == ("APPROVALS WAITING", "COUNTING DOWN")
    rule = the_rule(backends=backends("a", "b"))
    group: Group | None = None
    for event in DOWN[:3]:
        group = step(rule, group, event[0], event).group
    assert group is not None
    assert items([group], {rule.name: rule}, at(5)) == []
    both = items([counting.group, waiting.group], {}, at(21))
    assert [one.heading for one in both] == ["APPROVALS WAITING", "COUNTING DOWN"]


def test_what_others_wrote_cannot_draw_on_the_screen() -> None:
    item = listed()
    row = {**item.row, "windows": [{**item.row["windows"][0], "detail": "a\x1b[2Jb\nc"}]}
    text = "\n".join(drawn([Item(item.heading, item.group, row)], 0))
    assert r"a\x1b[2Jb\nc" in text


# --- keys ----------------------------------------------------------------------------------------------------------


def test_an_approval_needs_a_reason_and_a_yes_and_names_the_request_that_was_shown() -> None:
    item = listed("Approve", now=21)
    dialog = typed(Dialog(), [item], "a", ENTER)
    assert dialog.said.startswith("give a reason")
    typed(dialog, [item], *"checked", ENTER)
    assert dialog.confirmed() == []
    later = listed("Approve", now=22)
    typed(dialog, [later], "y")
    [wanted] = dialog.confirmed()
    command = made(wanted, "vera", at(22))
    assert isinstance(command, Approve)
    assert (command.rule, command.request, command.by) == ("web", request_of(item.group), "vera")
    assert command.reason == "checked"


@pytest.mark.parametrize("keys", [("a", "x", ENTER, "n"), ("a", "x", ENTER, ENTER), ("a", "x", ESCAPE)])
def test_anything_but_a_yes_gives_no_command(keys: tuple[str, ...]) -> None:
    dialog = typed(Dialog(), [listed("Approve", now=21)], *keys, "y")
    assert dialog.confirmed() == []
    assert dialog.wanted is None


def test_only_what_waits_can_be_approved_and_a_pause_is_of_the_chosen_rule_or_of_all() -> None:
    found = [listed(name="one"), listed(name="two")]
    dialog = typed(Dialog(), found, "a")
    assert dialog.said == "the chosen item waits for no approval"
    typed(dialog, found, "down", "p", *"why", ENTER, "y", "P", *"all", ENTER, "y")
    commands = [made(one, "vera", at(12)) for one in dialog.confirmed()]
    assert [(type(one), one.rule) for one in commands] == [(Pause, "two"), (Pause, "*")]


def test_the_chosen_item_stays_chosen_while_others_come_and_go() -> None:
    one, two, three = (listed(name=name) for name in ("one", "two", "three"))
    dialog = typed(Dialog(), [one, two], "down")
    assert dialog.position([three, one, two]) == 2
    assert dialog.position([three]) == 0
    assert dialog.position([]) == -1


def test_invisible_characters_are_refused_and_a_typed_reason_can_be_corrected() -> None:
    found = [listed()]
    dialog = typed(Dialog(), found, "p", "a", "\u202e", "b", "\x7f", "c")
    assert dialog.wanted is not None
    assert (dialog.wanted.verb, dialog.wanted.comment) == (Verb.PAUSE, "ac")


def test_arrows_are_keys_and_what_other_keys_send_is_no_text() -> None:
    assert list(named("a\x1b[A\x1b[Bé\x1b[15~\x1b[1;5Cq\x1b")) == ["a", "up", "down", "é", "q", "\x1b"]


# --- how old it is -------------------------------------------------------------------------------------------------


def test_what_is_shown_is_stale_before_the_bus_was_silent_for_3_seconds() -> None:
    now = [100.0 + STALE_SECONDS]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    watched = Watched(cast("Any", None), cast("Any", clock), {}, heard_at=100.0)
    assert watched.stale_seconds() == 0
    now[0] = 102.9
    assert watched.stale_seconds() == pytest.approx(2.9)
