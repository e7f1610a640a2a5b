"""One action, traced back on the bus to the observations that caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bus import subjects
from bus.messages import DecisionRecord, Observation, Outcome
from reactor.views.stored_records import OnUnreadable, stored
from rules.rehearsal.causal_chain import CausalChain, chain

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus


async def chain_of(bus: JetStreamBus, id_: str, unreadable: OnUnreadable) -> CausalChain | None:
    """Give the chain of an action; None: no decision of the last month asks for it. Raises Unavailable."""
    from bus.topology import DECISIONS, FACTS

    about = f"{subjects.ROOT}.decisions.*.{subjects.token(id_.partition('/')[0])}"
    decisions = stored(bus, DECISIONS, about, unreadable=unreadable)
    records = [one async for one in decisions if isinstance(one, DecisionRecord)]
    record = next((one for one in records if any(action["id"] == id_ for action in one.actions)), None)
    if record is None:
        return None
    observations = [one for target in _targets(record) for one in await observations_of(bus, target, unreadable)]
    mine = f"{subjects.ROOT}.facts.*.outcome.{subjects.token(id_)}"
    outcomes = [one async for one in stored(bus, FACTS, mine, unreadable=unreadable) if isinstance(one, Outcome)]
    return chain(id_, records, observations, outcomes)


async def observations_of(bus: JetStreamBus, target: str, unreadable: OnUnreadable) -> list[Observation]:
    """Give what was said of a target in the last day, each observation once: one is in each partition that it
    concerns. Raises Unavailable."""
    from bus.topology import FACTS

    found = stored(bus, FACTS, subjects.observations_of(target), unreadable=unreadable)
    said = [one async for one in found if isinstance(one, Observation)]
    return list({(one.target, one.signal, one.observed_at, one.status): one for one in said}.values())


def _targets(record: DecisionRecord) -> list[str]:
    """Targets whose health the decision rests on: members, also those of what the groups of the rule know together."""
    known = {target for state in (record.before, record.shared_group) for target in (state or {}).get("members") or {}}
    return sorted(known | {str(fact["target"]) for fact in record.facts if fact.get("fact") == "Observation"})
