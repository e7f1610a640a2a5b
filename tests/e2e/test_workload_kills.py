"""A reactor is killed at every step of taking workloads off a dead cluster: the same end, and nothing written twice.

Each start of the reactor has another point at which it is killed, first while workloads leave, then while their old
copies are purged. A workload whose action was in flight is given out again after ten seconds; others go on meanwhile.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from reactor.runtime.failpoints import NAMES
from rules.kinds.workload.state import WorkloadState
from tests.e2e.members import Members
from tests.e2e.moving import document, knows, remembers, rule, settled
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

APPS = [f"app{number}" for number in range(6)]
PACE = "{ratePerSecond: 0.7}"
"""Workloads leave one after the other, so that there is something to be done whenever the reactor is killed."""
LEAVING = (
    ("decider.fact-read", "decider.decided", "decider.groups-stored", "decider.epoch-taken"),
    ("decider.checkpointed", "executor.taken", "decider.state-stored", "decider.loaded"),
    ("decider.actions-published", "executor.intent-stored", "executor.before-write", "executor.done-stored"),
    ("decider.audit-published", "executor.after-write", "executor.outcome-published", "executor.before-ack"),
)
PURGING = ("executor.before-write", "executor.after-write", "decider.decided", "decider.actions-published")


def test_these_are_all_the_steps_there_are() -> None:
    assert {name for chain in LEAVING for name in chain} == {name for name in NAMES if not name.startswith("router")}


async def start(service: Service, failpoint: str = "") -> None:
    """Restart it, to be killed there."""
    service.failpoint = failpoint
    try:
        await service.start()
    except (AssertionError, aiohttp.ClientError):  # also in the middle of saying whether it is ready
        await until(lambda: not service.running, "it has ended at its start")
        assert service.process.returncode == -signal.SIGKILL, "it ended at its start, and was not killed"


async def killed(service: Service, failpoint: str) -> None:
    await until(lambda: not service.running, f"it is killed at {failpoint}")
    assert service.process.returncode == -signal.SIGKILL, failpoint


async def _all_evicted(service: Service) -> bool:
    """A cluster that is back before an eviction has begun keeps its copy: that is another story."""
    moves = [
        one.state.moves.get("member1")
        for one in await service.groups()
        if isinstance(one.state, WorkloadState) and one.object != "*"
    ]
    return len(moves) == len(APPS) and all(move is not None and move.evicted_at for move in moves)


@pytest.mark.long
@pytest.mark.timeout(300)  # seven starts of a process: 60 s on a quiet machine, and twice as long on a busy one
@pytest.mark.parametrize(("leaving", "purging"), [*zip(LEAVING, PURGING, strict=True)], ids=lambda one: str(one[0]))
async def test_a_kill_at_any_step_changes_nothing_in_the_end(
    tmp_path: Path, leaving: Sequence[str], purging: str
) -> None:
    async with Members(tmp_path / "members", 5) as members:
        for name in APPS:
            await members.run(name, "member1", "member2")
        text = document(members.names, rule("apps", copies=2, every=True, guards=PACE))
        service = Service(tmp_path / "reactor", rules=text, settings={"clusters": members.settings()})
        dead = members["member1"]
        async with service:
            await knows(service, {name: {"member1", "member2"} for name in APPS}, clusters=5, rule="apps")
            await remembers(service, len(APPS))
            lost = await dead.refuse()
            await service.kill()
            for failpoint in leaving:
                await start(service, failpoint)
                await killed(service, failpoint)
            await start(service)
            await until(
                lambda: all(members.healthy(name) >= {"member2", "member3"} for name in APPS),
                "all have left",
                within=90,
            )
            await until_told(partial(_all_evicted, service), "all evictions have begun", within=90)
            await service.kill()
            await start(service, purging)
            await dead.come_back()
            await killed(service, purging)
            await start(service)
            await until(lambda: all("member1" not in members.on(name) for name in APPS), "all are purged")
            await settled(service, *APPS, rule="apps")
        assert all(members.on(name) == {"member2", "member3"} for name in APPS)
        assert all(members.gaps(name, lost) == [] for name in APPS)
        assert [one for one in members.doubled() if one.resource != "events"] == []
        for name in APPS:
            placed, removed = (members[where].writes("deployments", name) for where in ("member3", "member1"))
            assert [write.verb for write in placed] == ["patch"], placed
            assert [write.verb for write in removed if write.verb == "delete"] == ["delete"], removed
            assert members["member2"].writes("", name) == []
