"""Bodies: what is a webhook, what is refused as a whole, and what becomes of it on the bus."""

from __future__ import annotations

import json
import time

import pytest

from bus.envelope import decode
from bus.errors import Malformed
from bus.messages import WebhookPost
from reactor.webhook.body import BadBody, read_body
from reactor.webhook.journal import SLOT_SECONDS, outgoing
from tests.unit.webhook.builders import alert, body, labelled, moment

BAD = {
    "empty": (b"", 400),
    "truncated": (body(alert())[:-40], 400),
    "a depth bomb": (b"[" * 1_000_000, 400),
    "a depth bomb in a key we do not know": (b'{"x":' + b'{"a":' * 200_000, 400),
    "an integer of 3 MB": (b'{"alerts":[' + b"9" * 3_000_000 + b"]}", 400),
    "an integer of 3 MB in a key we do not know": (b'{"x":' + b"9" * 3_000_000 + b"}", 400),
    "a lone surrogate": (b'{"alerts":[{"labels":{"a":"\\ud800"}}]}', 400),
    "bad UTF-8": (b'{"alerts":["\xff"]}', 400),
    "a byte order mark": (b"\xef\xbb\xbf" + body(alert()), 400),
    "UTF-16": (body(alert()).decode().encode("utf-16"), 400),
    "null": (b"null", 422),
    "a bare list": (b"[]", 422),
    "a text": (b'"firing"', 422),
    "version 3": (body(alert(), version="3"), 422),
    "a version that is a number": (body(alert(), version=4), 422),
    "alerts are an object": (body(alerts={}), 422),
    "a negative count": (body(alert(), truncatedAlerts=-1), 422),
    "too many alerts": (b'{"alerts":[' + b"1," * 100_000 + b"1]}", 413),
}


@pytest.mark.parametrize(("raw", "code"), BAD.values(), ids=BAD)
def test_what_is_no_webhook_is_refused_quickly_and_clearly(raw: bytes, code: int) -> None:
    started = time.thread_time()
    with pytest.raises(BadBody) as refused:
        read_body(raw)
    assert time.thread_time() - started < 0.5  # of the processor: 1 ms
    assert refused.value.code == code
    assert 5 < len(str(refused.value)) < 300


@pytest.mark.parametrize("raw", [b"{}", b'{"alerts":null}', body(), body(alert())[:-1] + b',"alerts":[]}'])
def test_a_body_without_alerts_is_taken(raw: bytes) -> None:
    assert read_body(raw).alerts == []
    assert outgoing("am", read_body(raw), moment(0)) == []


def test_one_bad_alert_costs_only_itself() -> None:
    found = read_body(body(alert("a"), {"status": "firing"}, alert("b", cluster="e\0ast"), alert("c")))
    assert [json.loads(text)["fingerprint"] for text in found.alerts] == ["a", "c"]
    assert len(found.quarantined) == 2


def test_what_alertmanager_left_out_is_known() -> None:
    assert read_body(body(alert(), truncatedAlerts=41)).truncated == 41


def ids(raw: bytes, at: float, source: str = "am") -> list[str]:
    return [message.id for message in outgoing(source, read_body(raw), moment(at))]


def test_a_retry_within_the_slot_has_the_same_id_and_a_repeat_later_has_not() -> None:
    raw = body(alert())
    assert ids(raw, 0) == ids(raw, SLOT_SECONDS - 1)
    assert ids(raw, 0) != ids(raw, SLOT_SECONDS)


def test_both_alertmanagers_of_a_pair_give_the_same_ids() -> None:
    assert ids(body(alert()), 0) == ids(body(alert(), externalURL="http://am-1:9093"), 1)


def test_other_alerts_or_another_source_have_other_ids() -> None:
    assert ids(body(alert()), 0) != ids(body(alert(firing=False, ends=9)), 0)
    assert ids(body(alert()), 0) != ids(body(alert()), 0, source="other")


def test_a_large_body_becomes_chunks_that_hold_every_alert_once() -> None:
    raw = body(*(alert(f"{number:016x}") for number in range(5_000)))
    messages = outgoing("am", read_body(raw), moment(0))
    assert max(len(message.body) for message in messages) <= 512_000
    posts = [decode(message.body).data for message in messages]
    assert all(isinstance(post, WebhookPost) for post in posts)
    assert [post.chunk for post in posts] == list(range(posts[0].chunks))
    assert [one["fingerprint"] for post in posts for one in post.alerts] == [f"{n:016x}" for n in range(5_000)]
    assert len({message.id for message in messages}) == len(messages)


def test_the_largest_alert_fits_into_one_chunk() -> None:
    labels = {f"l{number}": "\x01" * 600 for number in range(62)}
    (message,) = outgoing("am", read_body(body(labelled(labels))), moment(0))
    assert len(message.body) <= 512_000


def test_a_foreign_message_on_our_subject_is_malformed() -> None:
    with pytest.raises(Malformed):
        decode(b'{"alerts":[]}')
