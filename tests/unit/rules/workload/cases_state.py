"""Cases about state that is carried over, applied to our functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rules.kinds.workload.model import PreservationRule, StatePreservation
from rules.kinds.workload.preservation import injected, labels_of, state_of
from rules.kinds.workload.state import Relocation
from rules.rehearsal.simulation import at

Case = dict[str, Any]


def state_preservation(case: Case) -> None:
    rules = tuple(PreservationRule(alias_label_name=label, json_path=path) for label, path in case["rules"].items())
    found = labels_of(StatePreservation(rules=rules), state_of(case["rules"].values(), case["status"]))
    assert ("error" if isinstance(found, str) else found) == case["expect"]


def state_injection(case: Case) -> None:
    """Each task is a move; with another mode than Directly nothing is kept of its copy's state."""
    moves = [
        Relocation(
            "Cluster", "", "", evicted_at=at(0) + timedelta(seconds=number), purge_mode=task["purge"],
            preserved={"job": "7"} if task["purge"] in ("Directly", "Immediately") else {},
        )
        for number, task in enumerate(case["tasks"])
    ]  # fmt: skip
    plan = [case["to"], *(f"other{number}" for number in range(1, case["targets_count"]))]
    before = case["tasks"][-1]["before"] if case["tasks"] else []
    assert bool(injected(moves, plan, before)) == case["expect"]


CHECKS: dict[str, Callable[[Case], None]] = {
    "state_preservation": state_preservation, "state_injection": state_injection,
}  # fmt: skip
