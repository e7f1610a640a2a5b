"""Watches the bus while the process runs: whether it stores, whether its readings go on, and how its clock differs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from bus.embedded_health import FIX, EmbeddedHealth
from bus.errors import BusError
from bus.jetstream import JetStreamBus
from reactor.process.bus_repair import BusReconciler
from reactor.process.session import CLOCKS_APART, clock_difference
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable

log = logging.getLogger(__name__)

PROBE_SECONDS = 2.0


class BusWatch:
    """Watch of one process's bus. Each trouble is logged once when it begins, and once when it ends."""

    def __init__(
        self, bus: JetStreamBus, clock: Clock, repair: BusReconciler, embedded: EmbeddedHealth | None, store: Path,
        on_away: Callable[[], None],
    ) -> None:  # fmt: skip
        """`embedded`: health of the server that this process started, which keeps its data in `store`. `on_away` is
        called whenever the bus does not answer."""
        self._bus = bus
        self._clock = clock
        self._repair = repair
        self._embedded = embedded
        self._store = store
        self._on_away = on_away
        self._ailment = ""
        """Reason why an external bus stores nothing, as last logged; empty: it stores, or the reason is not known."""

    async def run(self) -> None:
        """Look every PROBE_SECONDS. Raises BusError where the bus does not answer: run it again."""
        apart = stalled = False
        while True:
            await self._diagnose()
            stalled = self._report_stalls(before=stalled)
            try:
                ahead, doubt = await clock_difference(self._bus, self._clock)
            except BusError:
                telemetry.bus_up.set(0)
                self._on_away()
                await self._diagnose()
                self._repair.look_now()  # it may have lost all that it held
                raise
            telemetry.bus_up.set(0 if self._lacking or self._why_not_stored else 1)
            apart = self._report_clocks(ahead, doubt, apart)
            await asyncio.sleep(PROBE_SECONDS)

    async def unreachable(self) -> str:
        """Reason why the bus takes no message now; empty: it takes them."""
        try:
            await self._bus.probe()
        except (BusError, Retryable) as error:
            return f"bus: {self._why_not_stored or error}"
        return ""

    @property
    def troubles(self) -> list[str]:
        """Streams, consumers, readings and storage that are missing on a bus that answers."""
        return [f"bus: {one}" for one in (*self._lacking, *filter(None, [self._why_not_stored]))]

    async def _diagnose(self) -> None:
        """Log once why the bus stores nothing, and what to do. A connection that looks healthy may lead to a full disk:
        only a write shows it."""
        if self._embedded is not None:
            return  # it logs that itself
        before, self._ailment = self._ailment, await self._bus.ailment()
        if self._ailment and not before:
            log.error("%s", self._ailment)
        elif before and not self._ailment:
            log.info("nats-server stores again, or is away")

    def _report_stalls(self, *, before: bool) -> bool:
        """Log once that readings stalled; `/readyz` names them all."""
        found = [*self._bus.connection.stalled.values()]
        if found and not before:
            log.error("%d readings got nothing; %s", len(found), found[0])
        elif before and not found:
            log.info("all that is stored on the bus is read again")
        return bool(found)

    def _report_clocks(self, ahead: timedelta, doubt: timedelta, before: bool) -> bool:
        """Time never jumps while we decide: a difference is reported, and set right at the next start."""
        # The machine's own, which we may not go by: it is what NTP has to set right.
        telemetry.clock_difference.set((self._clock.now() + ahead - self._clock.machine()).total_seconds())
        apart = abs(ahead) - doubt > CLOCKS_APART
        if apart and not before:
            log.warning(
                "the bus's clock and ours have drifted apart; a restart uses the bus's",
                extra={"ahead_seconds": round(-ahead.total_seconds(), 1)},
            )
        return apart

    @property
    def _why_not_stored(self) -> str:
        if self._embedded is None:
            return self._ailment
        return f"{self._embedded.trouble} ({self._store}); {FIX}" if self._embedded.trouble else ""

    @property
    def _lacking(self) -> Sequence[str]:
        return (*self._repair.lacking, *self._repair.paused, *self._bus.connection.stalled.values())
