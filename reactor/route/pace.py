"""Rate limit for each publisher on the bus, while more waits in the inbox than a router takes at once.

What is beyond waits elsewhere (`reactor.route.excess`). Where nothing waits, no publisher is delayed, and nothing is
counted. No clock: on a machine that is slow or busy a pace that holds elsewhere is none.
"""

from __future__ import annotations

import logging

from bus import subjects
from bus.port import Delivery
from reactor.runtime.clock import Clock
from reactor.runtime.log_throttle import LogThrottle

AT_ONCE = 10_000
"""Messages of one publisher, where the settings do not say how many: all targets of a large one, once."""
BACKLOG = 200
"""Messages that may wait behind one before those of a publisher are counted."""
SHARE = 0.05
"""Share of what is taken in such a time that may be one publisher's, beside what it may say at once."""
PUBLISHERS_MAX = 1000
"""Publishers whose messages are counted; further ones count as one."""

log = logging.getLogger(__name__)


class Pace:
    """Messages of each publisher since the inbox was last empty, or nearly so."""

    def __init__(self, at_once: int, clock: Clock) -> None:
        self._at_once = at_once
        self._taken = 0
        self._said: dict[str, int] = {}
        self._seldom = LogThrottle(clock)
        self.behind = False
        """True if more than BACKLOG messages waited in the inbox when one was last taken from it."""

    def admits(self, delivery: Delivery) -> bool:
        """True if this is to be routed now. Only observations and inventory are counted."""
        self.behind = delivery.pending >= BACKLOG
        if not self.behind:
            self._taken = 0
            self._said.clear()
            return True
        self._taken += 1
        if not subjects.is_spoken(delivery.subject):
            return True
        publisher = subjects.source_in(delivery.subject)
        if publisher not in self._said and len(self._said) >= PUBLISHERS_MAX:
            publisher = ""
        said = self._said.get(publisher, 0)
        if said < self._at_once + self._taken * SHARE:
            self._said[publisher] = said + 1
            return True
        if self._seldom(publisher):
            log.warning(
                "a publisher says more at once than is routed: what is over comes later, and no window waits for it",
                extra={"source": publisher, "limit": "observationsAtOnce"},
            )  # fmt: skip
        return False
