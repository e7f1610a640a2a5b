"""Payloads of notifiers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from bus.envelope import decode
from bus.messages import Notify, iso
from reactor.actions.notify.incidents import ALERT_LASTS, post_of
from reactor.settings.email import PORTS
from reactor.settings.notifier_settings import Notifier
from tests.unit.actions.builders import START, notify

ABOUT = "service/east/shop/checkout"
KINDS = ("webhook", "slack", "pagerduty", "opsgenie", "alertmanager")


def sent(kind: str, **more: Any) -> Any:
    post = post_of(kind, notify(**more), "K3Y")
    assert post.content_type == "application/json"
    return json.loads(post.body)


def test_slack_sees_text_and_no_commands() -> None:
    body = sent("slack", message='<!channel> & <http://evil|here> "é"\n')
    text = '&lt;!channel&gt; &amp; &lt;http://evil|here&gt; "é"\n'
    assert body["text"] == text
    assert body["blocks"][0] == {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def test_slack_says_what_why_since_when_and_what_to_type() -> None:
    body = sent("slack", message="checkout holds", because="AwaitingApproval")
    [about] = body["blocks"][1]["elements"]
    assert f"*AwaitingApproval* of checkout on {ABOUT}, <!date^{int(START.timestamp())}^" in about["text"]
    assert f"|{iso(START)}>" in about["text"]
    assert f"`reactor approve checkout {ABOUT} --comment …` or `reactor reject checkout" in about["text"]
    other = sent("slack", because="PrimaryUnhealthy")["blocks"][1]["elements"][0]["text"]
    assert "`reactor status checkout` or `reactor pause checkout --comment …`" in other


def test_a_webhook_gets_the_action_as_a_cloud_event() -> None:
    action = notify("ops", message="checkout is down")
    post = post_of("webhook", action, "")
    event = decode(post.body)
    assert post.content_type == "application/cloudevents+json"
    assert (event.id, event.time, event.subject, event.data) == (action.id, START, action.object, action)


def test_pagerduty_opens_one_incident_for_each_object_and_closes_it() -> None:
    body = sent("pagerduty")
    assert (body["routing_key"], body["event_action"], body["dedup_key"]) == ("K3Y", "trigger", f"checkout/{ABOUT}")
    payload = body["payload"]
    assert (payload["summary"], payload["source"], payload["severity"]) == ("checkout is down", ABOUT, "critical")
    assert payload["custom_details"]["reason"] == payload["class"] == "TargetChanged"
    over = sent("pagerduty", resolves=True)
    assert over == {"routing_key": "K3Y", "event_action": "resolve", "dedup_key": f"checkout/{ABOUT}"}


def test_opsgenie_opens_an_alert_by_its_alias_and_closes_it() -> None:
    post = post_of("opsgenie", notify(message="x" * 200), "K3Y")
    body = json.loads(post.body)
    assert (post.path, post.headers) == ("/v2/alerts", {"Authorization": "GenieKey K3Y"})
    assert (body["alias"], len(body["message"]), len(body["description"])) == (f"checkout/{ABOUT}", 130, 200)
    over = post_of("opsgenie", notify(resolves=True), "K3Y")
    assert over.path == "/v2/alerts/checkout%2Fservice%2Feast%2Fshop%2Fcheckout/close?identifierType=alias"


def test_alertmanager_gets_an_alert_that_lasts_until_it_is_over() -> None:
    [firing], [over] = sent("alertmanager"), sent("alertmanager", resolves=True)
    assert firing["labels"] == over["labels"] == {"alertname": "ReactorTells", "rule": "checkout", "object": ABOUT}
    assert (firing["startsAt"], firing["endsAt"]) == (iso(START), iso(START + ALERT_LASTS))
    assert over["endsAt"] == iso(START)
    assert post_of("alertmanager", notify(), "").path == "/api/v2/alerts"


@pytest.mark.parametrize("kind", KINDS)
def test_a_repeat_is_the_same_bytes(kind: str) -> None:
    assert post_of(kind, notify("ops"), "K3Y") == post_of(kind, notify("ops"), "K3Y")


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_too_long_for_any_receiver(kind: str) -> None:
    post = post_of(kind, notify(message="ü" * 4000), "K3Y")
    assert len(post.body) < 60_000


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"kind": "pagerduty"}, "needs key or keyFile"), ({"kind": "opsgenie"}, "needs key or keyFile"),
        ({"kind": "alertmanager"}, "needs url or urlFile"), ({"kind": "slack", "url": "http://x", "key": "a"}, "no key")
    ],
)  # fmt: skip
def test_settings_say_what_a_notifier_needs(given: dict[str, str], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        Notifier.model_validate(given)
    assert Notifier.model_validate({"kind": "pagerduty", "key": "K3Y"}).url is None


MAIL = {"host": "smtp.example.com", "from": "reactor@example.com", "to": ["ann@example.com"]}


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"to": []}, "at least 1 item"), ({"to": ["ann"]}, "is not one address"),
        ({"to": ["ann@example.com, bob@example.com"]}, "is not one address"),
        ({"from": "reactor@example.com\r\nBcc: eve@example.com"}, "is no address"),
        ({"to": ["änn@example.com"]}, "ASCII"), ({"user": "reactor"}, "user and passwordFile go together"),
        ({"user": "reactor", "passwordFile": "p", "tls": "None"}, "unencrypted"), ({"port": 0}, "port"),
        ({"host": "smtp example"}, "host"),
    ],
)  # fmt: skip
def test_settings_say_what_an_email_needs(changed: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        Notifier.model_validate({"kind": "email", "email": MAIL | changed})


def test_an_email_has_the_usual_ports_and_no_url() -> None:
    made = {tls: Notifier.model_validate({"kind": "email", "email": MAIL | {"tls": tls}}) for tls in PORTS}
    assert {tls: one.email.server_port for tls, one in made.items() if one.email} == PORTS
    for wrong in (
        {"kind": "email"},
        {"kind": "log", "email": MAIL},
        {"kind": "email", "email": MAIL, "url": "http://x"},
    ):
        with pytest.raises(ValidationError, match="kind email"):
            Notifier.model_validate(wrong)


def test_what_an_older_version_has_asked_for_resolves_nothing() -> None:
    known = notify().model_dump(mode="json", by_alias=True)
    del known["resolves"]
    assert Notify.model_validate(known).resolves is False
