"""Report of a broken promise: the seed, the shortest history that is found, and how to see it again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from reactor.audit.verdict import Breach
from tests.simulation.fleet.judge import judge, sentence
from tests.simulation.fleet.scenario import Scenario, dump
from tests.simulation.fleet.shrink import shrink
from tests.simulation.fleet.world import Seen, World

REGRESSIONS = Path(__file__).resolve().parents[1] / "regressions"


def unbroken(scenario: Scenario, *, name: str) -> None:
    """Play it. Fails with the shortest history where a promise is broken; SIM_KEEP=1 keeps that as a regression.

    `name`: as SIM_SEED takes it (tests/simulation/fleet/draws.py).
    """
    breaches = judge(World(scenario).play())
    if not breaches:
        return
    promise = breaches[0].promise
    shortest = shrink(scenario, lambda one: any(breach.promise == promise for breach in judge(World(one).play())))
    seen = World(shortest).play()
    if os.environ.get("SIM_KEEP"):
        keep(shortest, promise, what="")
    pytest.fail(report(shortest, seen, judge(seen), name=name), pytrace=False)


def report(scenario: Scenario, seen: Seen, breaches: Sequence[Breach], *, name: str) -> str:
    """Give all that is needed to understand and to repeat it. `name`: as SIM_SEED takes it."""
    lines = [f"{name}:", *(f"  {sentence(breach)}" for breach in breaches), "what happened:"]
    lines += [f"  {line}" for line in seen.story]
    lines += ["this scenario, for tests/simulation/regressions:", json.dumps(dump(scenario))]
    lines += [f"the whole history again: SIM_SEED={name} python -m pytest tests/simulation/fleet -k one_seed -s"]
    return "\n".join(lines)


def keep(scenario: Scenario, promise: str, *, what: str) -> Path:
    """Write a regression. `what`: what was wrong, in a sentence; it may be added later."""
    path = REGRESSIONS / f"{promise}_{scenario.seed}.json"
    path.write_text(json.dumps({"what": what, "scenario": dump(scenario)}, indent=1) + "\n", "utf-8")
    return path
