"""No test waits for silence with a real clock: it waits for a sign that comes after what must not happen.

Such a sign is a later message on the same ordered stream, a counter, an empty queue, or virtual time. A pause of a
polling loop is short. What takes the place of something slow (a function within a test, a method) may sleep, but not
what `until` and `until_told` ask: these make the pause themselves. `assert not await reading.next(...)` waits for
silence, as a sleep does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
POLL_SECONDS = 0.2
"""The longest pause in a `while` loop."""
PAUSE_SECONDS = 0.05
"""The longest one elsewhere."""
PASSES = "the time that passes is what the test is about"
ALLOWED = {
    "contract/bus/test_bus_contract.py::test_extended_work_stays_in_flight": PASSES,
    "contract/bus/test_bus_contract.py::"
    "test_a_queue_that_is_extended_by_itself_stays_in_flight_while_its_user_works": PASSES,
    "contract/bus/test_jetstream_faults.py::test_a_frozen_server_fails_the_probe_within_seconds":
        "longer than a silence that the reader takes for rest",
    "contract/bus/test_jetstream_faults.py::test_a_reader_that_waits_for_a_deleted_stream_is_told_when_there_is_another":
        "longer than a silence after which the reader asks for the stream",
    "contract/bus/test_provisioning.py::test_a_worker_of_a_queue_goes_on_when_it_was_made_again":
        "the reader waits inside a call by then: it has no event",
    "e2e/test_backtest.py::test_what_was_done_live_is_what_the_backtest_says": PASSES,
    "e2e/test_open_windows.py::test_a_restart_with_ten_thousand_open_windows_loses_none_and_hurries_none":
        f"{PASSES}; and for a write that would be doubled: the bus of this process takes no other client",
    "e2e/test_prometheus_query_path.py::test_a_window_waits_while_prometheus_is_away":
        "nothing comes after it: the only source is dead",
    "e2e/test_reload.py::test_an_open_window_keeps_its_start_over_a_reload": PASSES,
    "e2e/test_stop_whatever_hangs.py::test_a_stop_waits_for_nothing_that_hangs":
        "what hangs gives no sign: a write, queries, watches, a bus",
    "e2e/test_stop_whatever_hangs.py::test_a_stop_within_a_reload_leaves_nothing": "at any moment of a reload",
    "e2e/test_takeover.py::test_after_kill_9_another_acts_within_the_lease_and_open_windows_keep_their_start": PASSES,
    "e2e/test_takeover.py::test_after_a_clean_stop_another_acts_within_a_second": PASSES,
    "e2e/test_takeover.py::test_a_clean_stop_leaves_no_action_in_flight": "in the middle of slow writes",
    "integration/actions/workload/test_leave.py::test_pods_that_replace_those_that_left_go_with_the_object":
        "an API server writes whole seconds",
    "integration/actions/workload/test_place.py::"
    "test_a_write_that_arrives_after_its_process_was_killed_is_no_second_one": "a request under way has no sign",
    "integration/clients/test_kubernetes_client.py::hangs": "the event loop closes a dead program's pipes in its time",
    "integration/clients/test_reflector.py::test_a_list_that_lacks_most_is_believed_in_the_end": PASSES,
    "integration/clients/test_shared_watch.py::test_nothing_is_missed_or_mixed_up_while_watches_end_and_are_cut":
        "at any moment",
    "integration/roles/test_deciding.py::test_a_recovery_that_is_still_unread_stops_the_failover": PASSES,
    "integration/roles/test_evidence.py::test_silence_that_counts_as_bad_is_counted_from_the_start_after_an_outage_of_the_bus":
        PASSES,
    "integration/roles/test_long_actions.py::"
    "test_a_zones_step_back_waits_in_every_process_for_the_step_that_it_undoes":
        "an action that is given back to the queue is counted nowhere until it is given again",
    "integration/roles/test_routing.py::test_a_router_that_is_killed_delays_windows_by_two_seconds":
        "longer than the server's ack_wait: its work is kept by extensions, which no counter shows",
    "integration/roles/test_steps.py::test_no_step_with_ten_thousand_groups_holds_the_process_for_a_tenth_of_a_second":
        "what is measured are the steps of these seconds",
    "integration/webhook/test_lost_resolved.py::"
    "test_an_alert_whose_alertmanagers_come_back_empty_recovers_by_the_query":
        "longer than a poll, of an Alertmanager that is not polled",
    "integration/webhook/test_turns.py::"
    "test_posts_that_wait_for_routers_go_in_the_order_in_which_they_came_and_one_at_a_time": "a fifth of a look",
    "integration/webhook/test_turns.py::test_a_small_post_goes_between_the_pieces_of_a_large_one": "one look",
    "unit/bus/test_reading_watch.py::looked": f"{PASSES}: by a virtual clock",
    "unit/sources/test_answers_of_sources.py::_outage": f"{PASSES}: by a virtual clock",
}  # fmt: skip
"""Tests that sleep, and why nothing else will do."""


def sleeps(path: Path) -> Iterator[tuple[str, int]]:
    """Name and line of each function of a module that sleeps longer than it may."""
    text = path.read_text("utf-8")
    if not re.search(r"\bsleep\(|\.next\(", text):
        return
    tree = ast.parse(text)
    constants: dict[str, object] = {
        target.id: _seconds(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in tree.body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ((function.name, line) for line in _too_long(function, constants, most=PAUSE_SECONDS))
    asked = {
        call.args[0].id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("until", "until_told")
        if isinstance(call.args[0], ast.Name)
    }
    for inner in ast.walk(tree):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name in asked:
            yield from ((inner.name, line) for line in _too_long(inner, constants, most=0))


def _too_long(node: ast.AST, constants: Mapping[str, object], *, most: float) -> Iterator[int]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        given = _waited(inner)
        if given is not None:
            seconds = constants.get(given.id) if isinstance(given, ast.Name) else _seconds(given)
            if not isinstance(seconds, int | float) or seconds > most:
                yield given.lineno
        yield from _too_long(inner, constants, most=POLL_SECONDS if isinstance(inner, ast.While) else most)


def _waited(node: ast.AST) -> ast.expr | None:
    """Length of a sleep, or of a look that nothing comes; None: it is neither."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("asyncio.sleep", "time.sleep"):
        return node.args[0]
    if (
        isinstance(node, ast.Assert)
        and isinstance(node.test, ast.UnaryOp)
        and isinstance(node.test.operand, ast.Await)
        and isinstance(call := node.test.operand.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "next"
    ):
        return call.args[0]
    return None


def _seconds(node: ast.expr) -> object:
    """A number, or a timedelta of seconds or milliseconds, in seconds; None: neither."""
    if isinstance(node, ast.Constant):
        return node.value
    if ast.unparse(node) == "timedelta(0)":
        return 0
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "timedelta" and len(node.keywords) == 1:
        [length] = node.keywords
        unit = {"seconds": 1, "milliseconds": 0.001}.get(str(length.arg))
        if unit is not None and isinstance(length.value, ast.Constant) and isinstance(length.value.value, int | float):
            return length.value.value * unit
    return None


def test_no_test_waits_for_silence_with_a_real_clock() -> None:
    found = {
        f"{path.relative_to(TESTS).as_posix()}::{name}": line
        for part in ("unit", "contract", "integration", "e2e")
        for path in sorted((TESTS / part).rglob("test_*.py"))
        for name, line in sleeps(path)
    }
    new = [f"tests/{place} (line {line}): wait for a sign" for place, line in found.items() if place not in ALLOWED]
    assert not new, "\n".join(new)
    assert [place for place in ALLOWED if place not in found] == [], "these do not sleep any more"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("await asyncio.sleep(1)", [2]),
        ("await asyncio.sleep(LONG)", [2]),
        ("await asyncio.sleep(ends - now())", [2]),
        ("while waits():\n        await asyncio.sleep(0.1)", []),
        ("await asyncio.sleep(0)", []),
        ("async def slow():\n        await asyncio.sleep(60)", []),
        ("async def quiet():\n        await asyncio.sleep(0.1)\n    await until_told(quiet, 'x')", [3]),
        ("assert not await reading.next(timedelta(seconds=1))", [2]),
        ("assert not await reading.next(SHORT)", []),
        ("assert await reading.next(timedelta(seconds=1))", []),
    ],
)
def test_a_sleep_is_found(body: str, lines: list[int], tmp_path: Path) -> None:
    module = tmp_path / "test_it.py"
    module.write_text(f"async def test_it():\n    {body}\nLONG = 2\nSHORT = timedelta(milliseconds=50)\n", "utf-8")
    assert [line for _, line in sleeps(module)] == lines
