"""People who approve or reject what rules in mode Approve ask for, by what they were shown some time before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from bus.errors import Unavailable
from bus.messages import Approve, Reject
from bus.port import Store
from reactor.views.pending import about, request_of, waits
from rules.core.group import Group
from rules.engine.group_codec import load_group
from tests.simulation.fleet.clock import seconds
from tests.simulation.fleet.people import Speaker
from tests.simulation.fleet.scenario import Answer

EVERY = 1.0
"""Seconds between two looks of a person at what waits."""
PATIENT = 25.0
"""Seconds for which a person waits for a request; after that there is no answer."""


@dataclass(frozen=True, slots=True)
class AnswerSeen:
    """One answer as it came about. Times are seconds of the loop."""

    name: str
    """Of the rule."""
    yes: bool
    asked: float
    """Time at which the request that was shown was made; of an answer that names none, when it was given."""
    given: float
    taken: float
    """Time at which the bus had taken it."""
    request: str
    """Fingerprint of what was shown; empty: it names none."""


async def answer_rules(speaker: Speaker, store: Store, answers: tuple[Answer, ...], seen: list[AnswerSeen]) -> None:
    """Answer requests in their time. `store`: the groups. `seen`: takes what came about."""
    async with asyncio.TaskGroup() as group:
        for answer in answers:
            group.create_task(_answer(speaker, store, answer, seen))


async def _answer(speaker: Speaker, store: Store, answer: Answer, seen: list[AnswerSeen]) -> None:
    await speaker.until(answer.look)
    shown = await _shown(speaker, store, answer)
    if shown is None or shown.grants is None or shown.grants.request is None:
        return
    await speaker.clock.sleep(answer.after)
    request = request_of(shown) if answer.named else ""
    said: dict[str, Any] = {
        "rule": answer.name, "object": about(shown), "request": request, "by": "ops", "reason": "seen",
        "observed_at": speaker.clock.now(),
    }  # fmt: skip
    given = speaker.time()
    await speaker.give(Approve(**said) if answer.yes else Reject(**said, for_seconds=answer.for_seconds))
    asked = seconds(shown.grants.request.asked_at) if answer.named else given
    seen.append(AnswerSeen(answer.name, answer.yes, asked, given, speaker.time(), request))


async def _shown(speaker: Speaker, store: Store, answer: Answer) -> Group | None:
    """Give what waits for an answer, as `reactor approve` reads it."""
    for _ in range(round(PATIENT / EVERY)):
        try:
            groups = [load_group(entry.value) for entry in await store.entries("*.group.>")]
        except Unavailable:
            groups = []
        found = next((group for group in groups if group.rule == answer.name and waits(group)), None)
        if found is not None:
            return found
        await speaker.clock.sleep(EVERY)
    return None
