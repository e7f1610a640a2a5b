"""Content of notifications for each kind of notifier: the same action is the same bytes, and what is over closes its
incident."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from bus.envelope import encode
from bus.messages import Notify, iso
from rules.core.reasons import Held

PAGERDUTY, OPSGENIE = "https://events.pagerduty.com", "https://api.opsgenie.com"
ALERT_LASTS = timedelta(days=1)
"""Time after which an alert ends in Alertmanager if no other follows: without it it would be over in minutes."""
_SOURCE = "/reactor/executor"
_ASKS = (Held.AWAITING_APPROVAL, Held.APPROVAL_EXPIRED)


@dataclass(frozen=True, slots=True)
class Post:
    """One POST."""

    path: str
    """Behind the notifier's URL."""
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def post_of(kind: str, action: Notify, key: str) -> Post:
    """Give what is posted. `key`: the notifier's secret, where it has one."""
    match kind:
        case "slack":
            return Post("", _json(_slack(action)))
        case "pagerduty":
            return Post("/v2/enqueue", _json(_pagerduty(action, key)))
        case "opsgenie":
            return _opsgenie(action, {"Authorization": f"GenieKey {key}"})
        case "alertmanager":
            return Post("/api/v2/alerts", _json([_alert(action)]))
        case _:
            body = encode(action, id=action.id, source=_SOURCE, time=action.decided_at)
            return Post("", body, "application/cloudevents+json")


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def commands(action: Notify) -> list[str]:
    """Commands that a person may want to type next."""
    if action.because in _ASKS:
        about = f"{action.rule} {action.object}"
        return [f"reactor approve {about} --comment …", f"reactor reject {about} --comment …"]
    return [f"reactor status {action.rule}", f"reactor pause {action.rule} --comment …"]


def _slack(action: Notify) -> dict[str, Any]:
    text = _escaped(action.message)
    typed = " or ".join(f"`{_escaped(command)}`" for command in commands(action))
    since = f"<!date^{int(action.decided_at.timestamp())}^{{date_short_pretty}} {{time_secs}}|{iso(action.decided_at)}>"
    about = f"*{_escaped(action.because)}* of {_escaped(action.rule)} on {_escaped(action.object)}, {since}\n{typed}"
    link = f"<{action.link}|Approve or reject it, once>"
    return {"text": text, "blocks": [
        {"type": "section", "text": {"type": "mrkdwn", "text": text[:3000]}},
        *([{"type": "section", "text": {"type": "mrkdwn", "text": link}}] if action.link else []),
        {"type": "context", "elements": [{"type": "mrkdwn", "text": about[:2000]}]},
    ]}  # fmt: skip


def _escaped(text: str) -> str:
    """Slack's own three escapes: nothing in a label may become a link or call @channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _alias(action: Notify) -> str:
    """One incident for each object of a rule."""
    return f"{action.rule}/{action.object}"


def _details(action: Notify) -> dict[str, str]:
    return {
        "rule": action.rule, "object": action.object, "reason": action.because, "id": action.id,
        "next": "; ".join(commands(action)), **({"link": action.link} if action.link else {}),
    }  # fmt: skip


def _pagerduty(action: Notify, key: str) -> dict[str, Any]:
    known = {"routing_key": key, "dedup_key": _alias(action)[:255]}
    if action.resolves:
        return {**known, "event_action": "resolve"}
    return {**known, "event_action": "trigger", "client": "alert-reactor", "payload": {
        "summary": action.message[:1024], "source": action.object, "severity": "critical",
        "timestamp": iso(action.decided_at), "component": action.object, "group": action.rule,
        "class": action.because, "custom_details": _details(action),
    }, **({"links": [{"href": action.link, "text": "Approve or reject"}]} if action.link else {})}  # fmt: skip


def _opsgenie(action: Notify, headers: dict[str, str]) -> Post:
    alias = _alias(action)[:512]
    if action.resolves:
        path = f"/v2/alerts/{quote(alias, safe='')}/close?identifierType=alias"
        return Post(path, _json({"source": "alert-reactor", "note": action.message[:25_000]}), headers=headers)
    body = {
        "message": action.message[:130], "alias": alias, "description": action.message[:15_000],
        "entity": action.object[:512], "source": "alert-reactor", "tags": [action.because], "details": _details(action),
    }  # fmt: skip
    return Post("/v2/alerts", _json(body), headers=headers)


def _alert(action: Notify) -> dict[str, Any]:
    end = action.decided_at if action.resolves else action.decided_at + ALERT_LASTS
    return {
        "labels": {"alertname": "ReactorTells", "rule": action.rule, "object": action.object},
        "annotations": {"summary": action.message, "reason": action.because, "next": "; ".join(commands(action)),
                        **({"link": action.link} if action.link else {})},
        "startsAt": iso(action.decided_at), "endsAt": iso(end),
    }  # fmt: skip
