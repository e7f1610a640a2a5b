"""Every message comes back from its bytes as it went in, and garbage is called garbage."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, AwareDatetime

import bus.envelope
from bus.envelope import MESSAGES, decode, encode
from bus.errors import Malformed
from bus.messages import LOAD_BALANCERS, Cluster, Health, Message, MessagePart, Observation, RouteRef, WebhookPost
from bus.messages.base import ActionMessage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TARGETS = st.from_regex(r"[a-z]+(/[^/\x00-\x1f]{1,12}){1,3}", fullmatch=True).filter(
    lambda text: text.isprintable() and len(text) < 200
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | UNICODE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(UNICODE, inner, max_size=3),
    max_leaves=5,
)
MOMENTS = st.datetimes(timezones=st.just(UTC))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
SEEN = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=40)
"""Names and words of people, which hold nothing invisible."""


def messages(kind: type[MessagePart]) -> st.SearchStrategy[Any]:
    """Messages of one kind, made from its model, so that a new field is tried without a word here."""
    fields = {name: values(name, field.annotation, field.metadata) for name, field in kind.model_fields.items()}
    return st.fixed_dictionaries(fields).map(
        lambda given: kind(**(_placed(given) if issubclass(kind, RouteRef) else given))
    )


def _placed(given: dict[str, Any]) -> dict[str, Any]:
    """A route is in a cluster, a load balancer is not."""
    place = {"cluster", "namespace"}
    if given["kind"] in LOAD_BALANCERS:
        return {key: value for key, value in given.items() if key not in place}
    return given | {key: given[key] or "x" for key in place}


def values(name: str, annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    """Values that are legal for a field."""
    if name == "target":
        return TARGETS
    if name == "targets":
        return st.lists(TARGETS, max_size=3).map(tuple)
    if name == "leases_expired" and annotation is float:
        return st.floats(0, 1)
    if name == "healthy_percent" and annotation is float:
        return st.floats(0, 100)
    if annotation is AwareDatetime:
        return MOMENTS
    if get_origin(annotation) in (UnionType, Union):
        return st.one_of(*(values(name, option, [option]) for option in get_args(annotation)))
    if get_origin(annotation) is Annotated:
        return values(name, get_args(annotation)[0], [*get_args(annotation)[1:], *metadata])
    if get_origin(annotation) is tuple:
        return st.lists(values(name, get_args(annotation)[0], metadata), max_size=3).map(tuple)
    if get_origin(annotation) is dict and get_args(annotation)[1] is Any:
        return st.dictionaries(UNICODE, JSON, max_size=3)
    if get_origin(annotation) is dict:
        return st.dictionaries(NAMES, values(name, get_args(annotation)[1], metadata), max_size=3)
    if get_origin(annotation) is Literal:
        return st.sampled_from(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, MessagePart):
        return messages(annotation)
    seen = any(isinstance(one, AfterValidator) for one in metadata)
    simple = {
        str: SEEN if seen else NAMES if metadata else UNICODE,
        int: st.integers(1, 1_000_000),
        float: st.floats(0.001, 86_400),
    }
    return simple[annotation] if annotation in simple else st.from_type(annotation)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_message_comes_back_as_it_went_in(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    body = encode(message, id="some/id", source="/reactor/test", time=NOON)
    event = decode(body)
    assert event.data == message
    assert type(event.data) is kind
    assert (event.id, event.source, event.time, event.subject) == ("some/id", "/reactor/test", NOON, message.about)
    assert json.loads(body)["specversion"] == "1.0"
    assert not isinstance(message, ActionMessage) or isinstance(message.summary, str), "it says what it does"


@given(st.binary(max_size=200))
@example(b"")
@example(b"null")
@example(b"[" * 10_000)
@example(b"\xff\xfe")
@example(b'{"specversion": "1.0"}')
@example(b"1e999")
def test_garbage_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        decode(body)
    assert len(str(caught.value)) < 500


def envelope(**changes: Any) -> bytes:
    given_ = json.loads(encode(observation(), id="1", source="/s", time=NOON))
    given_.update(changes)
    return json.dumps(given_).encode()


def observation(**changes: Any) -> Observation:
    return Observation(target="service/east/web", status=Health.HEALTHY, observed_at=NOON, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"specversion": "0.3"},
        {"type": "dev.alert-reactor.unheard-of.v1"},
        {"id": ""},
        {"time": "2026-01-01T12:00:00"},
        {"data": {"target": "service/east/web", "status": "Fine", "observedAt": "2026-01-01T12:00:00Z"}},
        {"data": {"target": "web", "status": "Healthy", "observedAt": "2026-01-01T12:00:00Z"}},
        {"data": {"target": "service/a\u0000b", "status": "Healthy", "observedAt": "2026-01-01T12:00:00Z"}},
        {"data": {"target": "service/a\u202eb", "status": "Healthy", "observedAt": "2026-01-01T12:00:00Z"}},
        {"data": {"target": "service/" + "x" * 4_096, "status": "Healthy", "observedAt": "2026-01-01T12:00:00Z"}},
        {"data": {"target": "service/web", "status": "Healthy", "observedAt": "2026-01-01T12:00:00Z", "extra": 1}},
        {"data": None},
    ],
    ids=lambda changes: json.dumps(changes)[:60],
)
def test_a_message_that_breaks_its_rules_is_malformed(changes: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        decode(envelope(**changes))


def test_extensions_of_others_are_left_alone() -> None:
    assert decode(envelope(traceparent="00-1-2-01", partitionkey="x")).data == observation()


def test_the_error_says_where_but_not_the_whole_body() -> None:
    with pytest.raises(Malformed, match=r"data\.status") as caught:
        decode(envelope(data={"target": "service/web", "status": "s" * 4_000, "observedAt": "2026-01-01T12:00:00Z"}))
    assert "sss" not in str(caught.value)


def test_labels_of_four_kilobytes_travel_in_the_body() -> None:
    message = observation(labels={"description": "ü" * 4_096, "*.>": "a.b c\r\n"})
    assert decode(encode(message, id="1", source="/s", time=NOON)).data == message


def test_models_of_events_are_made_for_the_types_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all take up some MB of every process."""
    made: list[type[Message]] = []
    event = bus.envelope._event

    def noted(message: type[Message]) -> type[bus.envelope.Event]:
        made.append(message)
        return event(message)

    monkeypatch.setattr(bus.envelope, "_event", noted)
    events = bus.envelope._Events(Observation, WebhookPost)
    cluster = Cluster(name="east", observed_at=NOON)
    for message in (Observation(target="a/b", status=Health.HEALTHY, observed_at=NOON), cluster):
        body = encode(message, id="1", source="/test", time=NOON)
        assert events.read(body).data == message
        assert events.read(body).data == message
    assert made == [Observation, WebhookPost, Observation, WebhookPost, Cluster]


def test_a_type_that_there_is_not_is_told_with_all_that_there_are() -> None:
    body = encode(Observation(target="a/b", status=Health.HEALTHY, observed_at=NOON), id="1", source="/test", time=NOON)
    with pytest.raises(Malformed) as error:
        decode(body.replace(Observation.type.encode(), b"unheard-of"))
    assert [message.type for message in MESSAGES if message.type not in str(error.value)] == []
