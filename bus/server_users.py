"""Users with their permissions as NATS takes them: configuration of nats-server, or commands of nsc that make JWTs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Literal

from bus.permissions import Permissions

Login = Literal["password", "nkey"]
ANSWERS, ANSWER_SECONDS = 1, 10
"""Answers that a user who takes requests may give to each, and the seconds for them; nothing else may be published
there."""


def configuration(users: Iterable[Permissions], login: Login = "password") -> str:
    """Give the server's configuration. What a user logs in with comes from the server's environment:
    `$NATS_PASSWORD_<USER>`, or the public key in `$NATS_NKEY_<USER>`."""
    lines = ["# Written by `reactor bus permissions`. Include it in the server's configuration.", "authorization {"]
    lines.append("  users: [")
    for one in users:
        lines += [
            f"    # {one.user} {one.why}; its setting bus.inboxPrefix: {one.inbox}",
            f"    {{{_identity(one, login)}, permissions: {{",
            f"      publish: {_list(one.publish)}",
            f"      subscribe: {_list(one.subscribe)}",
            f'      allow_responses: {{max: {ANSWERS}, expires: "{ANSWER_SECONDS}s"}}' if _answers(one) else "",
            "    }}",
        ]
    return "\n".join([line for line in lines if line] + ["  ]", "}"]) + "\n"


def listed(users: Iterable[Permissions], login: Login = "password") -> list[dict[str, object]]:
    """Give the users as data: name, purpose, `bus.inboxPrefix`, what each logs in with, and the subjects.

    `allowResponses` is in it only for a user that answers requests: answers per request, and seconds."""
    return [
        {
            "user": one.user, "why": one.why, "inboxPrefix": one.inbox, login: f"${_variable(one, login)}",
            "publish": list(one.publish), "subscribe": list(one.subscribe),
        }
        | ({"allowResponses": {"max": ANSWERS, "expiresSeconds": ANSWER_SECONDS}} if _answers(one) else {})
        for one in users
    ]  # fmt: skip


def nsc_commands(users: Iterable[Permissions]) -> str:
    """Give a shell script that adds these users to the account that nsc works on, each with a signing key that has the
    permissions: in the user's own JWT they would be longer than a server's control line may be (4 KiB)."""
    lines = ["# Written by `reactor bus permissions --login jwt`. It adds users to the account that nsc works on."]
    for one in users:
        words = ["nsc", "edit", "signing-key", "--sk", "generate", "--role", one.user]
        words += ["--allow-pub", ",".join(one.publish), "--allow-sub", ",".join(one.subscribe)]
        if _answers(one):
            words += [f"--allow-pub-response={ANSWERS}", "--response-ttl", f"{ANSWER_SECONDS}s"]
        lines += [f"# {one.user} {one.why}; its setting bus.inboxPrefix: {one.inbox}", shlex.join(words)]
        lines.append(shlex.join(["nsc", "add", "user", "--name", one.user, "-K", one.user]))
    return "\n".join(lines) + "\n"


def _identity(one: Permissions, login: Login) -> str:
    if login == "nkey":
        return f"nkey: ${_variable(one, login)}"
    return f'user: "{one.user}", password: ${_variable(one, login)}'


def _variable(one: Permissions, login: Login) -> str:
    return f"NATS_{login.upper()}_{one.user.upper().replace('-', '_')}"


def _answers(one: Permissions) -> bool:
    """True if it takes requests: on more than its own inbox."""
    return len(one.subscribe) > 1


def _list(subjects: Iterable[str]) -> str:
    return "[\n" + "".join(f'        "{subject}"\n' for subject in subjects) + "      ]"
