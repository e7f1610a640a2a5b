"""Findings of `reactor bus check`, each with its fix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from reactor.workbench.doctor.finding import Finding, Findings

GROUP = "bus"
CLOCKS = "clocks"
INIT = "reactor bus init"
NOT_YET = "not there yet: reactor bus init makes it, and so does the first reactor"
STREAMS = frozenset({"streams", "partitions"})
FIXES = {
    "permissions": "reactor bus permissions --role reactor prints the users that the server's configuration needs",
    "partitions": "set bus.partitions in the settings to the number of the bus",
    "streams": "reactor bus check names the stream: delete or rename it, or use another bus",
    "write": "look at the log of nats-server: a full disk, no leader, or missing permissions",
    "clock": "synchronize both clocks by NTP: timedatectl set-ntp true",
}


class Checked(Protocol):
    """One line of `reactor bus check`."""

    @property
    def name(self) -> str: ...
    @property
    def result(self) -> str: ...
    @property
    def detail(self) -> str: ...


def findings(checked: Iterable[Checked], *, before_install: bool, suffix: str = "") -> Findings:
    """Give them as findings. `before_install`: what an installation makes need not be there.

    `suffix`: how commands name this bus, like ` --bus nats://…`.
    """
    lines = list(checked)
    absent = any(_absent(one) for one in lines)
    found = []
    for one in lines:
        group = CLOCKS if one.name == "clock" else GROUP
        name = GROUP if one.name == "clock" else one.name
        awaits = _absent(one) or (absent and one.name == "write" and one.result == "failed")
        if before_install and awaits:
            found.append(Finding(group, name, "skipped", NOT_YET))
        elif one.result == "failed":
            fix = f"{INIT}{suffix}" if awaits else FIXES.get(one.name, "")
            found.append(Finding(group, name, "failed", one.detail, fix))
        elif one.name == "sync_interval":  # a server does not say how it is set
            found.append(Finding(group, name, "skipped", one.detail))
        elif one.result == "hint":
            found.append(Finding(group, name, "warning", one.detail, FIXES.get(one.name, "")))
        else:
            found.append(Finding(group, name, "ok", one.detail))
    if all(one.group != CLOCKS for one in found):
        found.append(Finding(CLOCKS, GROUP, "skipped", "a bus tells its time when it takes a write, and it took none"))
    if before_install:
        found = list(dict.fromkeys(found))  # one line for all streams that are not there yet
    return found


def _absent(one: Checked) -> bool:
    """True if `reactor bus init` mends it."""
    return one.result == "failed" and one.name in STREAMS and one.detail.endswith(INIT)
