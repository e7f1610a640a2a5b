"""No message means more than its subject allows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bus import subjects
from bus.envelope import MESSAGES, encode
from bus.errors import Malformed
from bus.message_admission import CHANNELS, message_refusal, read_message
from bus.messages import (
    Cluster,
    Health,
    IsolateZone,
    Message,
    Mode,
    Notify,
    Observation,
    Outcome,
    Pause,
    Route,
    WebhookPost,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = "service/east/shop/db"
SAID = Observation(target=TARGET, status=Health.UNHEALTHY, signal="backup-check", observed_at=NOW)
PAUSE = Pause(rule="*", by="ann", reason="r", observed_at=NOW)
ISOLATE = IsolateZone(rule="zones", zone="z-a", by="ann", reason="r", observed_at=NOW)
ROUTE = Route(cluster="east", kind="TrafficSplit", namespace="shop", name="web", observed_at=NOW)
POST = WebhookPost(source="am", post="0" * 64, chunk=0, chunks=1, alerts=(), truncated=0, observed_at=NOW)
OUTCOME = Outcome(action="web/x/1", status="Done", observed_at=NOW)
TELL = Notify(
    id="db/x/1", rule="db", object=TARGET, generation=1, mode=Mode.ENFORCE, because="X", decided_at=NOW, message="m"
)
OWN = subjects.observation("backup-check", TARGET)


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (OWN, SAID),
        ("reactor.observations.backup-check.whatever.else", SAID),
        (subjects.inventory("cmdb", ROUTE.object), ROUTE),
        (subjects.webhook("am"), POST),
        (subjects.parked("am"), POST),
        (subjects.command("pause", "ann"), PAUSE),
        (subjects.command("isolatezone", "ann"), ISOLATE),
        (subjects.observed(3, TARGET, "backup-check-Unhealthy"), SAID),
        (subjects.fact(3, "route", ROUTE.about), ROUTE),
        (subjects.fact(3, "outcome", OUTCOME.about), OUTCOME),
        (subjects.action(0, "Notify", TARGET), TELL),
    ],
)
def test_what_its_subject_allows_is_read(subject: str, message: Message) -> None:
    assert read_message(subject, encode(message, id="1", source="/x", time=NOW)).data == message


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (OWN, ISOLATE),
        (OWN, PAUSE),
        (OWN, POST),
        (OWN, ROUTE),
        (OWN, OUTCOME),
        (OWN, TELL),
        (OWN, SAID.model_copy(update={"signal": "readiness"})),
        (OWN, SAID.model_copy(update={"source": "readiness"})),
        ("reactor.observations.backup-check", SAID),
        (subjects.command("pause", "ann"), ISOLATE),
        (subjects.command("isolatezone", "ann"), PAUSE),
        (subjects.command("pause", "eve"), PAUSE.model_copy(update={"user": "ann"})),
        ("reactor.commands.pause", PAUSE),
        (subjects.command("pause", "ann"), SAID),
        (subjects.webhook("other"), POST),
        (subjects.inventory("cmdb", TARGET), SAID),
        (subjects.fact(3, "pause", ISOLATE.about), ISOLATE),
        (subjects.observed(3, "service/east/shop/web", "backup-check-Unhealthy"), SAID),
        (subjects.observed(3, TARGET, "backup-check-Healthy"), SAID),
        (subjects.action(0, "SetWeights", TARGET), TELL),
        (subjects.action(0, "Notify", "service/east/shop/web"), TELL),
        (subjects.action(0, "Notify", TARGET), SAID),
        (subjects.decision(0, "db"), TELL),
        ("_INBOX.viewer.1", TELL),
        ("reactor.owner.1", TELL),
        ("reactor.refresh.x", TELL),
        ("other.observations.backup-check.x", SAID),
    ],
)
def test_what_its_subject_does_not_allow_is_refused(subject: str, message: Message) -> None:
    with pytest.raises(Malformed, match=r"may not come|belongs on|does not speak"):
        read_message(subject, encode(message, id="1", source="/x", time=NOW))


def test_every_message_has_a_subject_of_its_own_class() -> None:
    allowed = {message for channel in CHANNELS.values() for message in channel.messages}
    assert allowed == set(MESSAGES)


def test_a_long_source_name_speaks_on_its_token() -> None:
    signal = "a name of more than thirty-two characters"
    message = SAID.model_copy(update={"signal": signal})
    assert message_refusal(subjects.observation(signal, TARGET), message) == ""


@pytest.mark.parametrize(
    "subject", ["", ".", "reactor", "reactor.", "reactor..x", "reactor.facts", "reactor.actions.0"]
)
def test_a_subject_of_no_class_allows_nothing(subject: str) -> None:
    any_: Any = Cluster(name="east", observed_at=NOW)
    assert message_refusal(subject, any_)
