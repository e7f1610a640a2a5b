"""Bringing an isolated zone back by hand: whether it can be, and what it would come to."""

from __future__ import annotations

from reactor.runtime.visible import visible
from rules.core.group import Group
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.plan import undo_order
from rules.kinds.zone.return_evidence import way_back
from rules.kinds.zone.state import Isolation


def not_to_remove(isolation: Isolation, *, running: bool, force: bool) -> str:
    """Reason why an isolation is not aborted (`running`) or failed back now; empty: it is. What has failed may be asked
    for again."""
    status = isolation.status
    going = isolation.phase == "Failback" and status != "Failed" and not force
    if going or status == "Aborting":
        hint = "" if status == "Aborting" else "; --force opens it without proof"
        return f"{isolation.zone} is coming back: {isolation.phase}/{status}{hint}"
    begun = isolation.phase == "Failover" and status in ("Pending", "InProgress") and not _was_found(isolation)
    if (running and (status == "Done" or _was_found(isolation))) or (not running and begun and not force):
        return f"{isolation.phase} of {isolation.zone} is {status}: reactor zone {'abort' if begun else 'failback'}"
    return ""


def _was_found(isolation: Isolation) -> bool:
    """True for one that was taken up again and may be complete: it is failed back, and not aborted."""
    return bool(isolation.found) and isolation.status == "Pending"


def not_to_continue(isolation: Isolation) -> str:
    """Reason why there is nothing to try again; empty: there is."""
    failed = isolation.status == "Failed"
    return "" if failed else f"nothing has failed: {isolation.phase} is {isolation.status}"


def removal(rule: ZoneIsolation | None, group: Group, isolation: Isolation, *, force: bool) -> str:
    """Say what a failback, or an abort of what is being carried out, would do. `rule`: None where no file has it."""
    finished = isolation.status == "Done" or _was_found(isolation)
    undone = undo_order(rule, isolation.touched) if rule is not None else isolation.touched[::-1]
    back = ", ".join(undone) or "nothing: no step has begun"
    what = "fail back" if finished or isolation.phase == "Failback" else "abort the isolation"
    proof = way_back(rule, group, isolation.zone) if rule is not None else "as the reactor's own rules say"
    when = proof if finished and not force else "at once"
    return visible(f"{group.rule}: {what} of {isolation.zone}; undoes: {back}; begins: {when}")


def continuation(rule: str, isolation: Isolation) -> str:
    """Say what would be tried again."""
    return visible(f"{rule}: continue {isolation.phase} of {isolation.zone}: {isolation.failure}")
