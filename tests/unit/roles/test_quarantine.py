"""A publisher that floods a stream with unreadable messages costs a log line in ten seconds, and the others keep
theirs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bus import subjects
from bus.errors import Malformed
from bus.port import Delivery
from bus.topology import INBOX
from reactor.runtime import quarantine as quarantining
from reactor.runtime.log_limit import LogLimit
from reactor.runtime.quarantine import PUBLISHERS_MAX, failed, foreign, quarantine, unreadable
from reactor.runtime.telemetry import REGISTRY

FLOOD = 5000


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(quarantining, "limit", LogLimit(quarantining.LOG_SECONDS, PUBLISHERS_MAX, time))
    return time


def delivery(subject: str) -> Delivery:
    return Delivery(subject, b"x", 1, datetime(2026, 1, 1, tzinfo=UTC), 0)


def counted(stream: str) -> float:
    return REGISTRY.get_sample_value("reactor_quarantined_messages_total", {"stream": stream}) or 0.0


def test_a_flood_of_one_publisher_is_one_line_in_ten_seconds_and_the_next_says_how_many(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    before = counted(INBOX.name)
    for number in range(FLOOD):
        quarantine(delivery(subjects.observation("chatty", f"custom/{number}")), INBOX, Malformed("odd"))
    quarantine(delivery(subjects.observation("quiet", "custom/x")), INBOX, Malformed("odd"))
    assert [record.getMessage().split(".")[2] for record in caplog.records] == ["chatty", "quiet"]
    time.now = quarantining.LOG_SECONDS
    quarantine(delivery(subjects.observation("chatty", "custom/y")), INBOX, Malformed("odd"))
    assert f"({FLOOD - 1} more since" in caplog.records[-1].getMessage()
    assert counted(INBOX.name) == before + FLOOD + 2


def test_people_are_told_apart_whatever_they_command(time: Time, caplog: pytest.LogCaptureFixture) -> None:
    for user in ("ann", "bob"):
        for kind in ("pause", "resume"):
            quarantine(delivery(subjects.command(kind, user)), INBOX, Malformed("odd"))
    assert len(caplog.records) == 2


def test_ever_new_publishers_cost_a_bounded_number_of_lines_and_no_memory(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(FLOOD):
        quarantine(delivery(subjects.observation(f"source-{number}", "custom/x")), INBOX, Malformed("odd"))
    assert len(caplog.records) == PUBLISHERS_MAX + 1
    time.now = quarantining.LOG_SECONDS
    quarantine(delivery(subjects.observation("another", "custom/x")), INBOX, Malformed("odd"))
    assert len(caplog.records) == PUBLISHERS_MAX + 2


def test_a_failure_of_ours_is_told_with_its_traceback_once(time: Time, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(FLOOD):
        failed(delivery(subjects.observation("chatty", "custom/x")), INBOX, ZeroDivisionError())
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_pushed_messages_and_entries_of_buckets_are_bounded_too(time: Time, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(FLOOD):
        foreign(INBOX.name, f"reactor.observations.x.{number}")
        unreadable("reactor_leases", f"member.{number}", Malformed("odd"))
    assert len(caplog.records) == 2


@pytest.mark.parametrize("subject", ["", "x", "reactor.commands", "reactor.commands.pause", "reactor.observations"])
def test_a_subject_too_short_to_name_its_publisher_is_quarantined_too(
    time: Time, caplog: pytest.LogCaptureFixture, subject: str
) -> None:
    quarantine(delivery(subject), INBOX, Malformed("odd"))
    assert len(caplog.records) == 1


def test_no_other_file_counts_messages_as_quarantined_and_logs_each() -> None:
    reactor = Path(quarantining.__file__).parent.parent
    by_hand = {
        str(file.relative_to(reactor))
        for file in reactor.rglob("*.py")
        if "telemetry.quarantined" in file.read_text("utf-8")
    }
    # Of a partition's state and the audit's position, read at a hand-over alone.
    assert by_hand == {"decide/kept_rules.py", "decide/store.py", "audit/shared_chain.py", "runtime/quarantine.py"}
