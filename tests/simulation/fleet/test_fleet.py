"""A fleet under faults, a thousand seeds, and more of each other kind: nothing lost, doubled, early, blind or out of
order, and nothing excused.

    SIM_SEEDS=100000 pytest tests/simulation/fleet/test_fleet.py       more seeds
    SIM_SEED=orders:84 pytest tests/simulation/fleet -k one_seed -s    one seed, with its story: kinds are in draws.py
    SIM_KEEP=1 pytest tests/simulation/fleet/test_fleet.py             what fails is kept: tests/simulation/regressions

A failure shows its shortest history.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.fleet.draw import draw
from tests.simulation.fleet.draws import DRAWS, blocks, drawn
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.report import report, unbroken
from tests.simulation.fleet.world import World

SEEDS = int(os.environ.get("SIM_SEEDS", "1000"))
ROOT = Path(__file__).resolve().parents[3]

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.parametrize(("kind", "seeds"), blocks(SEEDS), ids=lambda part: str(getattr(part, "start", part)))
def test_every_promise_is_kept(kind: str, seeds: range) -> None:
    for seed in seeds:
        unbroken(DRAWS[kind](seed), name=f"{kind}:{seed}")


@pytest.mark.skipif("SIM_SEED" not in os.environ, reason="SIM_SEED=<kind>:<seed> plays one seed and prints its story")
def test_one_seed() -> None:
    name = os.environ["SIM_SEED"]
    seen = World(drawn(name)).play()
    print(report(drawn(name), seen, judge(seen), name=name))
    unbroken(drawn(name), name=name)


@pytest.mark.parametrize("seed", [1, 3, 10])
def test_the_same_seed_has_the_same_history(seed: int) -> None:
    first, second = World(draw(seed)).play(), World(draw(seed)).play()
    assert first.run.routes == second.run.routes
    assert first.hash == second.hash


def test_another_process_sees_the_same_history() -> None:
    """Nothing hangs on addresses or on the hashes of strings, which differ between processes."""
    program = "from tests.simulation.fleet.draw import draw; from tests.simulation.fleet.world import World; "
    program += "print(World(draw(3)).play().hash)"
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == World(draw(3)).play().hash


def test_faults_really_happen() -> None:
    stories = [line for seed in range(1, 40) for line in World(draw(seed)).play().story]
    for what in ("is killed", "is stopped", "is cut off", "rough for", "the bus is down", "WRITTEN"):
        assert any(what in line for line in stories), f"40 seeds and never: {what}"
