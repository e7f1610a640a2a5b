"""One run: a world, its reactors, a fault, and the verdict."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from reactor.audit.checker import PROMISES, Verdict, check
from reactor.audit.history import Run
from tests.chaos.faults import Fault
from tests.chaos.script import plans
from tests.chaos.world import World, together, world

ROUTES = 40


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one run."""

    fault: str
    seed: int
    tested: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    breaches: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    writes: int = 0
    skipped: str = ""
    """Why it could not be done here."""
    failed: str = ""
    """Why there is no verdict: the run itself went wrong."""

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not self.failed and not self.breaches


async def play(fault: Fault, seed: int, folder: Path, *, routes: int = ROUTES) -> Result:
    """Play one seed of one fault."""
    script = plans(seed, routes=routes, seconds=fault.seconds)
    async with world(folder, script, seconds=fault.seconds, nodes=fault.nodes) as scene:
        await _begin(scene, fault)
        speaking = asyncio.create_task(scene.stranger.speak())
        try:
            await scene.until_seen()
            scene.start = asyncio.get_running_loop().time()
            await together(scene.play(), _inflicted(fault, scene, Random(f"{seed}/{fault.name}")))
            await scene.until_settled(_converged)
        finally:
            speaking.cancel()
        return _result(fault, seed, scene)


async def _begin(scene: World, fault: Fault) -> None:
    members = [scene.member(f"reactor-{number}") for number in range(fault.members)]
    await asyncio.gather(*(member.start() for member in members))
    for member in members:
        scene.supervise(member)


async def _inflicted(fault: Fault, scene: World, random: Random) -> None:
    await fault.inflict(scene, random)


def _converged(run: Run) -> bool:
    return not check(run).broken("converged")


def _write_down(run: Run, folder: Path) -> None:
    """Keep the truth beside the reactors' logs."""
    (folder / "history.json").write_text(json.dumps(dataclasses.asdict(run), indent=1, default=dict), "utf-8")


def _result(fault: Fault, seed: int, scene: World) -> Result:
    run = scene.run()
    _write_down(run, scene.folder)
    verdict: Verdict = check(run)
    return Result(
        fault.name, seed,
        tested={promise: verdict.tested[promise] for promise in PROMISES},
        broken={promise: verdict.broken(promise) for promise in PROMISES},
        breaches=[f"{breach} (script {breach.at - scene.start:.3f})" for breach in verdict.breaches],
        notes=scene.notes, writes=sum(len(route.writes) for route in run.routes),
    )  # fmt: skip
