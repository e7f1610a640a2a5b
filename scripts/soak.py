"""Run the real service under a steady load for a long time, and say whether it grows.

    make soak MINUTES=30             or: .venv/bin/python -m scripts.soak --minutes 30 --json soak.json

One `reactor run` with its embedded bus looks after a hundred routes of an emulated cluster. Twice a second a route
fails, each second time by its endpoints and else by an alert, and comes back some seconds later: its traffic is moved
away and home again. Printed for each minute, for the reactor and for nats-server: resident memory in MB, open file
descriptors; and the facts that were not yet read, the moves and how long the slowest of them took beyond its window.

Exit code 0: flat and nothing late; 1: something grows, or a move was late or missing. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from pathlib import Path

from benchmarks.world import World, world
from scripts.soak_load import ROUTES, RULES, Load
from scripts.soak_verdict import COLUMNS, UNREAD_MAX, Minute, trends, verdict

LOOKS = 6
"""Reads of memory and descriptors in a minute; the table has the mean and the most."""
MORE_LOOKS = 2
BETWEEN_SECONDS = 1.7


def main() -> int:
    """Run, print a line a minute, and give the exit code."""
    parser = argparse.ArgumentParser(prog="soak", description="The real service under load, for a long time.")
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write minutes, trends and the verdict here")
    given = parser.parse_args()
    minutes = asyncio.run(_soak(given.minutes))
    bad = verdict(minutes)
    report = {
        "minutes": [dataclasses.asdict(minute) for minute in minutes],
        "trends": [dataclasses.asdict(trend) for trend in trends(minutes)],
        "verdict": bad or ["flat"],
    }
    _say("\n".join(str(trend) for trend in trends(minutes)))
    _say("; ".join(bad) if bad else "flat: nothing grows, nothing was late")
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return 1 if bad else 0


async def _soak(count: int) -> list[Minute]:
    minutes: list[Minute] = []
    async with world(ROUTES, RULES) as w:
        await w.known(ROUTES, 2)
        load = Load(w)
        running = asyncio.create_task(load.run())
        _say("  ".join(f"{name:>{width}}" for name, width in COLUMNS))
        for number in range(1, count + 1):
            minutes.append(await _minute(number, w, load))
            _say(minutes[-1].row())
            if running.done():
                running.result()  # it never ends by itself: this raises what went wrong
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return minutes


async def _minute(number: int, w: World, load: Load) -> Minute:
    loop = asyncio.get_running_loop()
    began, looks = loop.time(), []
    for look in range(1, LOOKS + 1):
        await asyncio.sleep(began + look * 60 / LOOKS - loop.time())
        server = _children(w.pid)[0]
        looks.append((_rss(w.pid), _fds(w.pid), _rss(server), _fds(server)))
    columns = list(zip(*looks, strict=True))
    moves, slowest, missing = load.told()
    return Minute(
        number, rss=_mean(columns[0]), fds=int(max(columns[1])), nats_rss=_mean(columns[2]),
        nats_fds=int(max(columns[3])), unread=await _behind(w), moves=moves, slowest=slowest, missing=missing,
    )  # fmt: skip


async def _behind(w: World) -> int:
    """Facts that stay unread. A look may come as sources repeat themselves, once a minute as regularly as the looks."""
    fewest = await _unread(w)
    for _ in range(MORE_LOOKS):
        if fewest <= UNREAD_MAX:
            break
        await asyncio.sleep(BETWEEN_SECONDS)
        fewest = min(fewest, await _unread(w))
    return fewest


async def _unread(w: World) -> int:
    """Facts behind the position of their partition, as `reactor members` shows them."""
    command = [sys.executable, "-m", "reactor.cli.main", "members", "--config", str(w.config), "-o", "json"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return sum(partition["unread"] for partition in json.loads(out)["partitions"])


def _mean(values: tuple[float, ...]) -> float:
    return round(sum(values) / len(values), 2)


def _rss(pid: int) -> float:
    """Resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has ended")


def _fds(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text("utf-8").split()]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
