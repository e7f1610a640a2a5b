"""By what evidence a zone would come back: what people are told before an isolation begins."""

from __future__ import annotations

from rules.kinds.zone.admission import SOURCES_MIN
from rules.kinds.zone.model import NoNetwork, StepName, ZoneIsolation
from rules.kinds.zone.request import counting
from rules.kinds.zone.state import ZoneGroup

FORCE = "reactor zone failback --force"


def way_back(rule: ZoneIsolation, group: ZoneGroup, zone: str, begins: str = "by reactor zone failback") -> str:
    """Say what brings this zone back once it is isolated by hand, by the signals that are heard now.

    `begins`: how its way back begins; that of a drill begins when its time is over.
    """
    member = group.members.get(rule.target(zone))
    names = rule.failback.signals
    heard = sorted(counting(names or rule.signals, member))
    missing = sorted(set(names or ()) - set(heard))
    if missing:
        return (
            f"{', '.join(missing)} of failback.signals without an observation: while that is so, only {FORCE} opens it"
        )
    if not heard:
        return f"no signal is about {rule.target(zone)}: only {FORCE} opens it"
    alone = " alone" if len(heard) < SOURCES_MIN else ""
    calls = f"{', '.join(heard)}{alone} {'call' if len(heard) > 1 else 'calls'}"
    words = f"{begins}, when {calls} it healthy for {rule.recovery_seconds:g} s; else by {FORCE}"
    cuts = StepName.CUT_NETWORK in rule.steps and not isinstance(rule.network, NoNetwork)
    if cuts and names is None:
        words += ". Signals that need the zone's network are bad until it is open"
    return words
