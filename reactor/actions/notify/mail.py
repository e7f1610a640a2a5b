"""A notification as an e-mail, in plain text. Subject and addresses are one line each, whatever a label holds."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from email import policy
from email.message import EmailMessage
from email.utils import format_datetime

from bus.messages import Notify
from reactor.actions.notify.incidents import commands
from reactor.runtime.visible import visible
from reactor.settings.email import Email
from rules.core.reasons import sentence

SUBJECT_MAX = 200
"""Characters. The body has everything."""
_DOMAIN = "alert-reactor.invalid"
"""Domain of message ids. They are made from the action's id, so that a repeat has the id of the first."""


def letter(action: Notify, to: Email, now: datetime) -> EmailMessage:
    """Give the mail. A repeat has the same Message-ID; mails about one object are one thread."""
    made = EmailMessage(policy=policy.SMTP)
    made["From"] = to.sender
    made["To"] = ", ".join(to.to)
    over = "over: " if action.resolves else ""
    made["Subject"] = visible(f"{over}{action.rule}: {action.because} on {action.object}")[:SUBJECT_MAX]
    made["Date"] = format_datetime(now)
    made["Message-ID"] = _message_id(action.id)
    made["References"] = _message_id(f"{action.rule}/{action.object}")
    made["Auto-Submitted"] = "auto-generated"  # out-of-office replies are for people (RFC 3834)
    made.set_content(_body(action, now))
    return made


def _body(action: Notify, now: datetime) -> str:
    lines = [
        visible(action.message), "",
        f"Why:     {action.because}: {sentence(action.because)}",
        f"Rule:    {visible(action.rule)}",
        f"Object:  {visible(action.object)}",
        f"Since:   {action.decided_at:%Y-%m-%d %H:%M:%S} UTC, {_in_words(now - action.decided_at)} before this mail",
        *(["", "Approve or reject it here, once:", f"  {action.link}"] if action.link else []),
        "", "What to type next:", *(f"  {visible(command)}" for command in commands(action)), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _in_words(lasts: timedelta) -> str:
    """`3 s`, `12 min`, `5 h 20 min`."""
    seconds = max(0, int(lasts.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _message_id(of: str) -> str:
    return f"<{hashlib.sha256(of.encode()).hexdigest()[:32]}@{_DOMAIN}>"
