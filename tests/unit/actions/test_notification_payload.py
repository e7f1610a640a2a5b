"""What notifiers are sent."""

from __future__ import annotations

import json

from bus.envelope import decode
from reactor.actions.posting import payload
from tests.unit.actions.builders import START, notify


def test_slack_sees_text_and_no_commands() -> None:
    body, content_type = payload("slack", notify(message='<!channel> & <http://evil|here> "é"\n'))
    assert content_type == "application/json"
    assert json.loads(body) == {"text": '&lt;!channel&gt; &amp; &lt;http://evil|here&gt; "é"\n'}


def test_a_webhook_gets_the_action_as_a_cloud_event() -> None:
    action = notify("ops", message="checkout is down")
    body, content_type = payload("webhook", action)
    event = decode(body)
    assert content_type == "application/cloudevents+json"
    assert (event.id, event.time, event.subject, event.data) == (action.id, START, action.object, action)


def test_a_repeat_is_the_same_bytes() -> None:
    assert payload("webhook", notify("ops")) == payload("webhook", notify("ops"))
