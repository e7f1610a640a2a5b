"""Decides if a LIST that lacks most of the objects of a moment ago may be believed.

An API server that has just started, whose cache or backup is not complete, answers 200 with few objects or none. So a
LIST that lacks more than half of them is believed only when others have said the same for long enough, and none that
lacks an object which is there when it is read alone. What a watch says is deleted is believed at once.
"""

from __future__ import annotations

import logging
from collections.abc import Set

from reactor.clients.changes import ObjectKey
from reactor.runtime import telemetry

LISTS = 3
SECONDS = 30.0
AGAIN_SECONDS = 5.0
"""While there is doubt, the collection is listed this often."""
OBJECTS_MIN = 2
"""Of fewer objects, that they are gone is no wonder."""

log = logging.getLogger(__name__)


class Doubt:
    """The doubt about one collection."""

    def __init__(self, cluster: str, path: str) -> None:
        self._where = {"cluster": cluster, "path": path}
        self._lists = 0
        self._since = 0.0
        self.keys: Set[ObjectKey] = frozenset()
        """Objects that existed a moment ago, and that the last LIST lacks."""

    def listed(
        self, stood: Set[ObjectKey], found: Set[ObjectKey], now: float, *, present: ObjectKey | None = None
    ) -> Set[ObjectKey]:
        """Take note of a LIST. Gives what it lacks and is not believed to be gone. `now`: monotonic, in seconds.

        `present`: one of the objects that it lacks was found when it was read alone.
        """
        lacking = stood - found
        if present is None and (len(stood) < OBJECTS_MIN or 2 * len(lacking) <= len(stood)):
            return self._settled(f"{len(lacking)} of {len(stood)} objects are missing now", believed=False)
        if not self.keys:
            self._begun(f"{len(lacking)} of {len(stood)} are missing", present)
        if not self.keys or present is not None:
            self._lists, self._since = 0, now
        self._lists += 1
        if self._lists >= LISTS and now - self._since >= SECONDS:
            return self._settled(f"{len(lacking)} objects are gone", believed=True)
        self.keys = lacking
        return lacking

    def _begun(self, missing: str, present: ObjectKey | None) -> None:
        telemetry.lists_doubted.labels(self._where["cluster"]).inc()
        if present is not None:
            reason = f"{missing}, and {present.name} is there when it is read alone"
            log.warning("a list lacks what is there: it is not believed", extra={**self._where, "reason": reason})
            return
        log.warning(
            "a list lacks most objects that were there a moment ago: it is believed after %d lists over %g s",
            LISTS, SECONDS, extra={**self._where, "reason": missing},
        )  # fmt: skip

    def seen(self, key: ObjectKey) -> None:
        """Take note that a watch has said what became of an object."""
        if key in self.keys:
            self.keys = self.keys - {key}

    def _settled(self, how: str, *, believed: bool) -> Set[ObjectKey]:
        if self.keys:
            log.warning(
                "a list that was in doubt is %s: %s", "believed" if believed else "refuted", how, extra=self._where
            )
        self.keys = frozenset()
        return self.keys
