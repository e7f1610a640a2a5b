"""What a process believes of the bucket."""

from __future__ import annotations

from bus.port import Entry
from reactor.alerts.alert import Alert
from reactor.alerts.cache import Mirror
from reactor.alerts.states import AlertState, take
from tests.unit.webhook.builders import SHOP, alert, moment, resolved


def states() -> tuple[AlertState, AlertState]:
    """An alert that fires, and its end."""
    fires, _ = take(None, Alert.read(alert()), moment(1), opinion=SHOP, believe=False)
    ends, _ = take(fires, Alert.read(resolved()), moment(110), opinion=SHOP, believe=False)
    return fires, ends


def entry(state: AlertState, revision: int) -> Entry:
    return Entry(state.key, state.model_dump_json().encode(), revision)


def test_an_older_revision_that_comes_late_undoes_nothing() -> None:
    fires, ends = states()
    mirror = Mirror()
    mirror.apply(entry(ends, 2))
    mirror.apply(entry(fires, 1))
    assert list(mirror) == [ends]


def test_each_change_is_told_of_once() -> None:
    fires, ends = states()
    mirror = Mirror()
    mirror.apply(entry(fires, 1))
    assert mirror.take_changed() == {SHOP}
    assert mirror.take_changed() == set()
    mirror.apply(entry(ends, 2))
    assert mirror.take_changed() == {SHOP}
    mirror.forget(ends.key)
    assert mirror.take_changed() == {SHOP}
    assert (mirror.of(SHOP), mirror.opinions()) == ([], [])


def test_what_cannot_be_read_keeps_its_revision_so_that_it_can_be_written_over() -> None:
    fires, _ = states()
    mirror = Mirror()
    mirror.apply(Entry(fires.key, b"\xff", 7))
    assert (mirror.held(fires.key).state, mirror.held(fires.key).revision) == (None, 7)
    assert list(mirror) == []
