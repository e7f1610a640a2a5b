"""The rule that follows from a Quorum source."""

from __future__ import annotations

from bus.messages import Mode
from rules.rulefile.model import Rule
from rules.rulefile.sources import Quorum

QUORUM = "@quorum."


class QuorumRule(Rule):
    """A Quorum source in the form of a rule. No file has it: it follows from the sources in rule files."""

    name: str
    """`@quorum.` and the source's name."""
    mode: Mode = Mode.ENFORCE
    source: Quorum

    @property
    def default_peers(self) -> tuple[str, ...]:
        """Empty: a Quorum source has no guards."""
        return ()
