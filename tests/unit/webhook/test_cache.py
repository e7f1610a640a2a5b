"""Cache of the bucket in a process."""

from __future__ import annotations

from bus.port import KeyValueEntry
from reactor.alerts.alert import Alert
from reactor.alerts.cache import AlertCache
from reactor.alerts.states import AlertState, take
from tests.unit.webhook.builders import SHOP, alert, moment, resolved


def states() -> tuple[AlertState, AlertState]:
    """An alert that fires, and its end."""
    fires, _ = take(None, Alert.read(alert()), moment(1), opinion=SHOP, believe=False)
    ends, _ = take(fires, Alert.read(resolved()), moment(110), opinion=SHOP, believe=False)
    return fires, ends


def entry(state: AlertState, revision: int) -> KeyValueEntry:
    return KeyValueEntry(state.key, state.model_dump_json().encode(), revision)


def test_an_older_revision_that_comes_late_undoes_nothing() -> None:
    fires, ends = states()
    alert_cache = AlertCache()
    alert_cache.apply(entry(ends, 2))
    alert_cache.apply(entry(fires, 1))
    assert list(alert_cache) == [ends]


def test_each_change_is_told_of_once() -> None:
    fires, ends = states()
    alert_cache = AlertCache()
    alert_cache.apply(entry(fires, 1))
    assert alert_cache.take_changed() == {SHOP}
    assert alert_cache.take_changed() == set()
    alert_cache.apply(entry(ends, 2))
    assert alert_cache.take_changed() == {SHOP}
    alert_cache.forget(ends.key)
    assert alert_cache.take_changed() == {SHOP}
    assert (alert_cache.of(SHOP), alert_cache.opinions()) == ([], [])


def test_what_cannot_be_read_keeps_its_revision_so_that_it_can_be_written_over() -> None:
    fires, _ = states()
    alert_cache = AlertCache()
    alert_cache.apply(KeyValueEntry(fires.key, b"\xff", 7))
    assert (alert_cache.held(fires.key).state, alert_cache.held(fires.key).revision) == (None, 7)
    assert list(alert_cache) == []
