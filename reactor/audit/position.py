"""The position of a partition: the last fact that it has had, and the newest record of its audit.

Keys of another release are kept and written back, as those of groups are (rules/engine/group_codec.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from bus.errors import Malformed
from bus.json_text import parsed
from reactor.audit.chain import Head
from rules.core.later_keys import LaterKeys, later_keys, with_later


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a partition, as it is stored beside its groups."""

    sequence: int = 0
    """Sequence of the last fact; 0: none."""
    stream: str = ""
    """Time at which the stream of facts was created that it counts; empty: not known."""
    rules: str = ""
    """Digest of the rules by which the facts up to it were read."""
    audited: Head = field(default_factory=Head)
    later: LaterKeys | None = field(default=None, compare=False, repr=False)
    """Keys that another release stored and this one does not know."""

    @classmethod
    def read(cls, stored: bytes) -> Position:
        """Raises Malformed."""
        try:
            said = parsed(stored)
            found = cls(int(said["sequence"]), str(said.get("stream", "")), str(said.get("rules", "")),
                        Head.read(said.get("audit")))  # fmt: skip
            return replace(found, later=later_keys(said, found._known("")))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise Malformed(f"not a stored position: {error!r}") from error

    def dump(self, owner: str) -> bytes:
        """`owner`: who writes it."""
        return json.dumps(with_later(self._known(owner), self.later)).encode()

    def _known(self, owner: str) -> dict[str, Any]:
        return {
            "sequence": self.sequence, "owner": owner, "stream": self.stream, "rules": self.rules,
            "audit": self.audited.stored(),
        }  # fmt: skip
