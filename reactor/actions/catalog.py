"""Which carrier carries out which action. A new kind of action is one case here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp

from bus.messages import Action, Notify, Outcome, SetWeights
from reactor.actions import notify, routes
from reactor.actions.aside import Aside
from reactor.actions.events import CONTROLLER
from reactor.actions.outcomes import Unfit, failed
from reactor.clients.port import KubeApi
from reactor.clock import Clock
from reactor.errors import ReactorError, SettingsError
from reactor.settings import Notifier


@dataclass(frozen=True, slots=True)
class ActionWorld:
    """All that actions reach the world through. Made once for each process."""

    clock: Clock
    clusters: Callable[[str], Awaitable[KubeApi]]
    """From a cluster's name to its API, connected at first use. Raises SettingsError where the settings do not tell."""
    notifiers: Mapping[str, Notifier]
    http: aiohttp.ClientSession
    instance: str = CONTROLLER
    """This process's name, as Kubernetes Events show it."""
    told: notify.Told = field(default_factory=notify.Told)
    aside: Aside | None = None
    """Does what nobody has to wait for; None: it is waited for."""


async def carry_out(action: Action, world: ActionWorld) -> Outcome:
    """Carry one action out and say what became of it. Repeating it is safe.

    Never raises for what the world does. What does come out of here is a mistake of ours, or a cancellation.
    """
    match action:
        case SetWeights():
            return await _set_weights(action, world)
        case Notify():
            return await notify.carry_out(
                action, world.clock, notifiers=world.notifiers, http=world.http, told=world.told
            )


async def _set_weights(action: SetWeights, world: ActionWorld) -> Outcome:
    try:
        api = await world.clusters(action.route.cluster)
    except SettingsError as error:
        return failed(action.id, world.clock, Unfit("UnknownCluster", str(error)))
    except ReactorError as error:
        return failed(action.id, world.clock, error)
    return await routes.carry_out(api, action, world.clock, instance=world.instance, aside=world.aside)
