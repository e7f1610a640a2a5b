"""The roles that work in this process, and their change to other rules: one role set ends before the next begins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from bus.errors import NotPermitted, Unavailable
from reactor.process.process_context import ProcessContext
from reactor.process.role_set import RoleSet
from reactor.process.zeros import begin_at_zero
from reactor.runtime.errors import ReactorError
from rules.loader import RuleSet

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Seconds between two tries to begin while the bus is away."""
START_SECONDS = 60.0
"""Seconds for which a start asks a bus again that does not answer in time; then it ends with the reason."""


class ActiveRoles:
    """The role set of one process."""

    def __init__(
        self, context: ProcessContext, roles: frozenset[str], listen_for: Callable[..., None], broken: asyncio.Event
    ) -> None:
        """`listen_for(*rules)`: has webhooks taken for the sources of all these rules. `broken`: is set when no rules
        can be carried out any more."""
        self._context = context
        self._clock = context.clock
        self._roles = roles
        self._listen_for = listen_for
        self._broken = broken
        self._stack = AsyncExitStack()
        self._changing: asyncio.Task[None] | None = None
        self.current: RoleSet | None = None
        """None while rules are changed, and after the end."""
        self.since = self._clock.now()
        """Time at which the current role set began."""

    async def start(self, rules: RuleSet) -> None:
        """Begin for the first time. Raises what is wrong at once; a bus that is only slow is asked again."""
        began = self._clock.monotonic()
        while True:
            try:
                return await self._begin(rules)
            except Unavailable as error:
                if isinstance(error, NotPermitted) or self._clock.monotonic() - began >= START_SECONDS:
                    raise
                log.warning("the start waits for the bus: %s", error)
                await asyncio.sleep(AGAIN_SECONDS)

    async def switch(self, before: RuleSet, rules: RuleSet) -> None:
        """Use other rules. Raises ReactorError where that fails, and uses those of before again.

        Webhooks are taken meanwhile: they wait on the bus for the next router.
        """
        self._listen_for(before, rules)
        await self.close()
        try:
            await self._patiently(rules)
        except Exception as error:  # a mistake of ours too: without roles nothing would fail over
            await self._back_to(before)
            raise ReactorError(f"{type(error).__name__}: {error}") from error
        self._listen_for(rules)

    async def close(self) -> None:
        """Stop in the reverse order: take nothing new, hand over."""

        async def end() -> None:
            self.current = None
            await self._stack.aclose()

        await self._to_its_end(end)

    async def _begin(self, rules: RuleSet) -> None:
        begin_at_zero(self._context.settings, rules, self._roles)

        async def begin() -> None:
            self.current = await self._stack.enter_async_context(RoleSet(self._context, rules, self._roles))
            self.since = self._clock.now()

        await self._to_its_end(begin)

    async def _to_its_end(self, change: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin or end a role set. A stop that interrupts this waits until it is done: no role is left behind."""
        while self._changing is not None and not self._changing.done():
            await asyncio.wait([self._changing])
        self._changing = asyncio.create_task(change())
        await asyncio.shield(self._changing)

    async def _back_to(self, rules: RuleSet) -> None:
        try:
            await self._patiently(rules)
        except Exception:  # a process without roles must end, whatever the reason
            self._broken.set()
            raise
        self._listen_for(rules)

    async def _patiently(self, rules: RuleSet) -> None:
        while True:
            try:
                return await self._begin(rules)
            except Unavailable as error:
                log.warning("the next rules wait for the bus: %s", error)
                await asyncio.sleep(AGAIN_SECONDS)
