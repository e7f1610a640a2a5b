"""Some seeds of one fault in one world, and the verdicts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from bus.errors import BusError
from bus.topology import DECISIONS, FACTS
from reactor.audit.verdict import AuditVerdict, Breach
from tests.chaos.faults import Fault
from tests.chaos.fleet import NotUp
from tests.chaos.world import Act, World, together, world
from tests.judge.checker import PROMISES, check, lateness
from tests.judge.object_history import Run

ROUTES = 24
"""Number of routes of a seed."""
LINGER_SECONDS = 2.5
"""Seconds to wait, once all weights are where they belong, for a write that moves them once more."""
MISTAKES = ("Traceback (most recent call last)", "a source ended by itself")
"""Text in a reactor's log that only its own mistakes lead to: an outage is logged without a traceback."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one seed of a fault."""

    fault: str
    seed: int
    tested: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    breaches: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    """Log lines of the reactors of its world about mistakes of their own."""
    notes: list[str] = field(default_factory=list)
    writes: int = 0
    skipped: str = ""
    """Reason why it could not be done here; empty: it was done."""
    failed: str = ""
    """Reason why there is no verdict: the run itself failed; empty: it did not."""
    late: float = 0.0
    """Seconds from the end of a window, or of the fault, to the latest of the actions that were then due."""
    stood_still: float = 0.0
    """Seconds for which this machine suspended the truth itself: what was broken then proves nothing."""

    @property
    def good(self) -> bool:
        """True if every promise was kept, and no reactor failed on the way."""
        return not self.failed and not self.breaches and not self.mistakes

    @property
    def word(self) -> str:
        """Result in a word."""
        if self.skipped:
            return "skipped"
        return "NO VERDICT" if self.failed else "kept" if self.good else "BROKEN"


async def play(fault: Fault, seeds: Sequence[int], folder: Path, *, routes: int = ROUTES) -> list[Result]:
    """Play these seeds of one fault, one after the other in one world; each is watched until the last has ended."""
    acts = [fault.act(seed, routes) for seed in seeds]
    environment, earlier = fault.environment(folder), fault.earlier(folder)
    played: list[Act] = []
    failure = ""
    async with world(
        folder, acts, nodes=fault.nodes, apart=fault.apart, environment=environment, earlier=earlier
    ) as scene:
        looking = asyncio.create_task(scene.watch_ourselves())
        try:
            await _begin(scene, fault)
            for act in acts:
                await _act(scene, act, fault)
                played.append(act)
            await asyncio.sleep(LINGER_SECONDS)
            await _export(scene)
        except (NotUp, TimeoutError, ExceptionGroup) as error:
            failure = repr(error)
        finally:
            looking.cancel()
        wrong = mistakes(folder)
        good = [replace(_result(fault, act, scene), mistakes=wrong) for act in played]
    return good + [Result(fault.name, act.seed, failed=failure) for act in acts if act not in played]


async def _begin(scene: World, fault: Fault) -> None:
    members = [scene.member(f"reactor-{number}") for number in range(fault.members)]
    await asyncio.gather(*(member.start() for member in members))
    for member in members:
        scene.supervise(member)
    await scene.until_seen()


async def _act(scene: World, act: Act, fault: Fault) -> None:
    scene.begin(act)
    await together(scene.play(), _inflicted(fault, scene, Random(f"{act.seed}/{fault.name}")))
    await scene.until_settled(_converged)


async def _inflicted(fault: Fault, scene: World, random: Random) -> None:
    await fault.inflict(scene, random)


async def _export(scene: World) -> None:
    """Keep the audit and the facts beside the logs, if the bus is well."""
    try:
        for stream in (DECISIONS, FACTS):
            await scene.export(stream)
    except BusError as error:
        scene.note(f"the bus is not well: {error}")


def _converged(run: Run) -> bool:
    """True if all is where it belongs, and nothing is still to come."""
    verdict = check(run)
    waits = any(breach.promise == "lost" and breach.at >= run.end for breach in verdict.breaches)
    return not waits and not verdict.broken("converged")


def _result(fault: Fault, act: Act, scene: World) -> Result:
    run = scene.run(act)
    # The truth, kept beside the reactors' logs.
    history = json.dumps(dataclasses.asdict(run), indent=1, default=_plain)
    (scene.folder / f"history-{act.seed}.json").write_text(history, "utf-8")
    verdict: AuditVerdict = check(run)
    return Result(
        fault.name, act.seed,
        tested={promise: verdict.tested[promise] for promise in PROMISES},
        broken={promise: verdict.broken(promise) for promise in PROMISES},
        breaches=[f"{breach} (script {breach.at - act.start:.3f}{_about(act, breach)})" for breach in verdict.breaches],
        late=round(lateness(run), 3),
        notes=list(act.notes), stood_still=act.stood_still, writes=run.writes,
    )  # fmt: skip


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else dict(value)  # type: ignore[call-overload]


def mistakes(folder: Path) -> list[str]:
    """Give the lines in which the reactors of a world tell of mistakes of their own, each with its file and number."""
    return [
        f"{log.name}:{number}: {line}"
        for log in sorted(folder.glob("*.log"))
        for number, line in enumerate(log.read_text("utf-8", "replace").splitlines(), 1)
        if any(mistake in line for mistake in MISTAKES)
    ]


def _about(act: Act, breach: Breach) -> str:
    """Source, pattern and fault of the object's plan."""
    plan = next(plan for plan in act.script if plan.name == breach.route)
    fault = f"; fault {act.strike.begin:.1f} to {act.strike.end:.1f}" if act.strike else ""
    return f"; {plan.source}{f', {plan.pattern}' if plan.pattern else ''}{fault}"
