"""The last fact of each subject of a partition: the current state, whichever process has read it, by whatever rules.

Sources and inventories repeat the current state only every 30 s. An owner whose groups have not had it reads it here.
"""

from __future__ import annotations

from typing import get_args

from bus import subjects
from bus.errors import Malformed
from bus.message_admission import read_message
from bus.messages import AcquireReply, AcquireRequest, AnyCommand, Fact, Observation, Outcome
from bus.port import Bus
from bus.topology import FACTS
from reactor.runtime.quarantine import quarantine
from reactor.runtime.slices import sliced

_FACTS = get_args(Fact)
_EVENTS = (Outcome, AcquireRequest, AcquireReply, *get_args(AnyCommand))
"""These happened once, and to the groups that there were then."""


async def observations(bus: Bus, partition: int, position: int) -> list[Observation]:
    """Give what was observed last of each target up to this position. Raises Unavailable."""
    found = await _last(bus, subjects.observations(partition), position)
    return [fact for fact in found if isinstance(fact, Observation)]


async def current_facts(bus: Bus, partition: int, position: int) -> list[Fact]:
    """Give the inventory and the observations up to this position, the inventory first: it opens groups.

    Raises Unavailable.
    """
    found = await _last(bus, subjects.facts(partition), position)
    facts = [fact for fact in found if not isinstance(fact, _EVENTS)]
    return sorted(facts, key=lambda fact: (isinstance(fact, Observation), fact.about))


async def _last(bus: Bus, subject: str, position: int) -> list[Fact]:
    found: list[Fact] = []
    async for one in sliced(await bus.last_of_each(FACTS, subject)):
        try:
            fact = read_message(one.subject, one.body).data
        except Malformed as error:
            quarantine(one, FACTS, error)
            continue
        if isinstance(fact, _FACTS) and one.sequence <= position:
            found.append(fact)
    return found
