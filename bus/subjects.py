"""The one place where subjects and KV keys are built.

A label value never goes raw into a subject: one of 4 KB kills a nats-py connection for good, `*` and `>` are stored as
they are, and empty tokens are never delivered (all measured). So each part is a legal token already, or becomes a slug
and ten hex digits of its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

ROOT = "reactor"
SLUG_MAX = 32
TOKENS_KEPT = 8192
KEPT_CHARACTERS = 256
"""Number of tokens, of texts with at most this many characters, that are not computed again: what is routed is read
again at once, and its subject is checked. A few MB at most."""
_LEGAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}\Z")
_HASHED = re.compile(r"-[0-9a-f]{10}\Z")
_OTHER = re.compile(r"[^a-z0-9]+")


def token(text: str) -> str:
    """Give one legal subject token or KV key part: at most 43 characters, different for different texts.

    A text that already is a short legal token stays as it is, unless it looks like a hashed one.
    """
    return _kept(text) if len(text) <= KEPT_CHARACTERS else _token(text)


def _token(text: str) -> str:
    if _LEGAL.match(text) and not _HASHED.search(text):
        return text
    slug = _OTHER.sub("-", text.lower()).strip("-")[:SLUG_MAX]
    return f"{slug or 'x'}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


_kept = lru_cache(TOKENS_KEPT)(_token)


def partition_of(rule: str, scope: str, partitions: int) -> int:
    """Give the partition, 0 to partitions - 1, in which this rule's groups of this scope live."""
    digest = hashlib.sha256(f"{rule}\0{scope}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % partitions


def observation(source: str, target: str) -> str:
    """Subject of an observation by a source outside the reactor. `source` is also its signal: nothing else is taken."""
    return f"{ROOT}.observations.{token(source)}.{token(target)}"


def inventory(source: str, about: str) -> str:
    """Subject of inventory from a source outside the reactor."""
    return f"{ROOT}.inventory.{token(source)}.{token(about)}"


def is_spoken(subject: str) -> bool:
    """True if a source outside the reactor publishes on it: an observation, or an inventory."""
    return subject.startswith((f"{ROOT}.observations.", f"{ROOT}.inventory."))


def source_in(subject: str) -> str:
    """The source on whose subject an observation or an inventory was published, as its token."""
    return subject.split(".")[2]


def publisher_in(subject: str) -> str:
    """Publisher on this subject, as far as permissions bind it: a source, a user, a partition.

    Empty where the subject is too short to say.
    """
    tokens = subject.split(".")
    place = 3 if tokens[1:2] == ["commands"] else 2
    return tokens[place] if len(tokens) > place else ""


def webhook(source: str) -> str:
    """Subject of the journaled bodies of Alertmanager's posts."""
    return f"{ROOT}.webhooks.{token(source)}"


def parked(source: str) -> str:
    """Subject of posts that wait for a router whose rules know their source."""
    return f"{ROOT}.parked.{token(source)}"


def excess(source_token: str) -> str:
    """Subject of what a source said too fast, until its turn comes."""
    return f"{ROOT}.excess.{source_token}"


def command(kind: str, user: str) -> str:
    """Subject of people's commands. `user`, a token: the bus' permissions let no user publish as another."""
    return f"{ROOT}.commands.{token(kind)}.{user}"


def user_in(command_subject: str) -> str:
    """The user of the bus who gave this command."""
    return command_subject.split(".")[3]


def fact(partition: int, kind: str, about: str) -> str:
    """Subject of a fact for a partition that it concerns; an observation has `observed`."""
    return f"{ROOT}.facts.{partition}.{token(kind)}.{token(about)}"


def observed(partition: int, target: str, opinion: str) -> str:
    """Subject of an observation for a partition that it concerns. `opinion`: its signal and its status.

    The newest message of each opinion, together, are what was said last of the target: one that comes late, and says
    what is over, hides no newer one.
    """
    return f"{ROOT}.facts.{partition}.observation.{token(target)}.{token(opinion)}"


def of_partitions(subject: str, partitions: Iterable[int]) -> Sequence[str]:
    """Subjects of the copies of a fact, of which this is the subject in one partition: its tokens are made once."""
    root, facts, _, rest = subject.split(".", 3)
    return [f"{root}.{facts}.{partition}.{rest}" for partition in partitions]


def facts(partition: int) -> str:
    """All facts of one partition."""
    return f"{ROOT}.facts.{partition}.>"


def observations(partition: int) -> str:
    """All observations of one partition."""
    return f"{ROOT}.facts.{partition}.observation.*.*"


def observations_of(target: str) -> str:
    """All observations of one target, in whatever partition."""
    return f"{ROOT}.facts.*.observation.{token(target)}.*"


def action(partition: int, kind: str, about: str) -> str:
    """Subject of an action that waits for an executor."""
    return f"{ROOT}.actions.{partition}.{token(kind)}.{token(about)}"


def partition_in(action_subject: str) -> int:
    """The partition of which the decider has published this action."""
    return int(action_subject.split(".")[2])


def owner(partition: int) -> str:
    """The marker of a partition's owner; its sequence is the epoch. In the same stream as the actions it fences."""
    return f"{ROOT}.owner.{partition}"


def alive(member: str) -> str:
    """Core request subject that a member of the fleet answers while it lives."""
    return f"{ROOT}.alive.{token(member)}"


def refresh(source: str) -> str:
    """Core subject on which the process that runs this source is asked for a fresh look; stored nowhere."""
    return f"{ROOT}.refresh.{token(source)}"


def wanted(partition: int) -> str:
    """Core request subject on which a decider answers whether an action of its partition is still wanted."""
    return f"{ROOT}.wanted.{partition}"


COMMANDS = "commands"
"""Partition of commands in the audit: a person's command belongs to no other."""


def decision(partition: int | str, rule: str) -> str:
    """The audit. `partition`: or COMMANDS."""
    return f"{ROOT}.decisions.{partition}.{token(rule)}"


def decisions(partition: int | str) -> str:
    """The audit of one partition, or of COMMANDS: a chain of its own."""
    return f"{ROOT}.decisions.{partition}.*"


def key(*parts: str) -> str:
    """A KV key of these parts."""
    return ".".join(token(part) for part in parts)


def commands_position() -> str:
    """The KV key under which routers keep the newest hash of the audit of COMMANDS."""
    return key(COMMANDS, "position")


def group(partition: int, rule: str, object_: str) -> str:
    """The KV key under which a decider stores a group of its partition."""
    return key(str(partition), "group", f"{rule}/{object_}")


def kept_rule(partition: int | str, rule: str) -> str:
    """The KV key under which a decider keeps the text of a rule until what it did is undone. `*`: a pattern for all."""
    return f"{partition}.rule.{rule if rule == '*' else token(rule)}"


def inbox(user: str) -> str:
    """The prefix of a user's inboxes: no other user may listen there."""
    return f"_INBOX_{token(user)}"
