"""Finds the carrier of an action: the module of its name, so that a new one needs no line here."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast, get_args

from bus.messages import Action, ActionMessage, Carrier, Outcome
from reactor.actions.carrier_context import Carried, CarrierContext
from reactor.actions.execution import ExecutionContext

Carry = Callable[[Any, CarrierContext, ExecutionContext], Awaitable[Outcome]]
"""Any: each takes its own action only."""


def _carry(name: str, what: str) -> Carry:
    module = "carry_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if find_spec(f"reactor.actions.carriers.{module}") is None:
        raise LookupError(f"{what} {name}: no reactor/actions/carriers/{module}.py carries it out")
    return cast("Carry", import_module(f"reactor.actions.carriers.{module}").carry_out)


def names_its_carrier(action: type[ActionMessage]) -> bool:
    """True if the rule says by its `carrier` which one carries such actions out."""
    field = action.model_fields.get("carrier")
    return field is not None and get_args(field.annotation) == get_args(Carrier)


CARRIERS: Mapping[Carrier, Carry] = {word: _carry(word, "carrier") for word in get_args(Carrier)}
"""Carriers by the word in a rule's `carrier`."""
ACTIONS: Mapping[type[ActionMessage], Carry] = {
    one: _carry(one.__name__, "action") for one in get_args(Action) if not names_its_carrier(one)
}
"""Carriers of the other actions, by their class."""


async def carry_out(action: Action, world: CarrierContext, context: ExecutionContext | None = None) -> Outcome:
    """Carry one action out and give its outcome. Repeating it is safe. `context`: what precedes each write.

    Raises nothing for what the outside world answers: only a mistake of ours, or a cancellation.
    """
    context = context or ExecutionContext()
    carry = ACTIONS.get(type(action)) or CARRIERS[cast("Carried", action).carrier]
    return await carry(action, world, context)
