"""A month of a real Prometheus played back: 200 series at 30 s steps, each value another one than the last."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Result
from tests.e2e.service import environment
from tests.ports import free_port

DAYS = 30
SERVICES = 200
STEP_SECONDS = 30
START = 1_767_225_600  # 2026-01-01T00:00:00Z: any midnight; the same history each time
DAY = 86_400
BAD_RATIO = 0.05
READY_SECONDS = 60.0

HEAD = """apiVersion: reactor/v1
sources:
  - name: errors
    kind: PrometheusQuery
    prometheus: main
    query: shop_errors_ratio
    everySeconds: {step}
    target: service/east/shop/{{service}}
    unhealthyWhen: {{above: {bad}}}
rules:
"""
RULE = """  - name: r{n}
    kind: TrafficFailover
    mode: Enforce
    route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: r{n}}}
    primary: s{n}
    backends: [{{service: s{n}}}, {{service: s{other}}}]
    tolerationSeconds: 60
    recoverySeconds: 120
"""


def rule_file(services: int) -> str:
    """Half of the services are primaries, the other half steps in."""
    rules = "".join(RULE.format(n=n, other=n + services // 2) for n in range(services // 2))
    return HEAD.format(step=STEP_SECONDS, bad=BAD_RATIO) + rules


def outages(services: int, days: int) -> list[list[tuple[int, int]]]:
    """Outages of each service, as begin and end in seconds: now and then for a step or two, seldom for an hour."""
    drawn = random.Random(4711)
    return [
        sorted(
            (start := START + drawn.randrange(days * DAY), start + drawn.choice((30, 60, 60, 300, 3600)))
            for _ in range(days)
        )
        for _ in range(services)
    ]


def openmetrics(day: int, bad: list[list[tuple[int, int]]]) -> Iterator[str]:
    """One day of all series, in the text that promtool reads."""
    drawn = random.Random(day)
    begin, end = START + day * DAY, START + (day + 1) * DAY
    yield "# TYPE shop_errors_ratio gauge\n"
    for service, spans in enumerate(bad):
        today = [span for span in spans if span[1] > begin and span[0] < end]
        noise = [drawn.randrange(4000) for _ in range(97)]  # prime, so that it does not repeat with the day
        for number, second in enumerate(range(begin, end, STEP_SECONDS)):
            worse = 0.2 if today and any(first <= second < last for first, last in today) else 0
            value = worse + noise[number % 97] / 100_000 + number % 7 / 1_000_000
            yield f'shop_errors_ratio{{service="s{service}"}} {value:.6f} {second}\n'
    yield "# TYPE up gauge\n"
    for second in range(begin, end, STEP_SECONDS):
        yield f'up{{job="shop"}} 1 {second}\n'
    yield "# EOF\n"


def fill(folder: Path, *, days: int, services: int) -> None:
    """Import the history, a day at a time, as a TSDB of blocks."""
    bad = outages(services, days)
    text = folder / "day.om"
    for day in range(days):
        with text.open("w", encoding="ascii") as file:
            file.writelines(openmetrics(day, bad))
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=24h", str(text),
             str(folder / "data")],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    text.unlink()


async def backtest(days: int = DAYS, services: int = SERVICES) -> Result:
    """Fill a Prometheus, then run `reactor backtest` twice: with an empty cache, and with a full one."""
    name = "backtest"
    if not shutil.which("promtool") or not shutil.which("prometheus"):
        return Result(name, "not measured: prometheus and promtool are not on PATH", {})
    with tempfile.TemporaryDirectory(prefix="reactor-bench-") as base:
        folder = Path(base)
        (folder / "rules.yaml").write_text(rule_file(services), "utf-8")
        began = time.perf_counter()
        await asyncio.to_thread(fill, folder, days=days, services=services)
        filled = time.perf_counter() - began
        server = Server(folder)
        try:
            await server.ready()
            cold = await asyncio.to_thread(_run, folder, server.url, days, "cold.json")
            warm = await asyncio.to_thread(_run, folder, server.url, days, "warm.json")
            page = await asyncio.to_thread(_run, folder, server.url, days, "page.json", html=True)
        finally:
            server_cpu = server.stop()
        report = json.loads((folder / "cold.json").read_text("utf-8"))
        figures = {
            "days": days, "series": services, "step_seconds": STEP_SECONDS,
            "samples": days * services * DAY // STEP_SECONDS, "fill_seconds": round(filled, 1),
            "seconds": round(cold.seconds, 2), "cpu_seconds": round(cold.cpu, 2),
            "prometheus_cpu_seconds": round(server_cpu, 2), "max_rss_mb": round(cold.rss_mb),
            "again_seconds": round(warm.seconds, 2),
            "page_seconds": round(page.seconds, 2), "page_max_rss_mb": round(page.rss_mb),
            "page_kb": (folder / "page.html").stat().st_size // 1024,
            "failovers": sum(rule["failovers"] for rule in report["rules"]),
            "flaps_avoided": sum(rule["flapsAvoided"] for rule in report["rules"]),
            "same_bytes_twice": (folder / "cold.json").read_bytes() == (folder / "warm.json").read_bytes(),
        }  # fmt: skip
    return Result(
        name,
        "a month of a real Prometheus, fetched and played",
        figures,
        {"seconds": "< 60", "max_rss_mb": "< 500", "page_max_rss_mb": "< 500"},
    )


class Server:
    """Prometheus over the imported blocks; it scrapes nothing."""

    def __init__(self, folder: Path) -> None:
        (folder / "prometheus.yml").write_text("global: {scrape_interval: 1m}\n", "utf-8")
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             "--storage.tsdb.retention.time=100y", f"--web.listen-address={self.url.removeprefix('http://')}"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip

    async def ready(self) -> None:
        """Wait until it answers queries. Raises TimeoutError."""
        import aiohttp

        async with asyncio.timeout(READY_SECONDS), aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{self.url}/-/ready") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientConnectionError:
                    pass
                await asyncio.sleep(0.1)

    def stop(self) -> float:
        """End it, and give the seconds of CPU that it has used."""
        self._process.terminate()
        _, cpu, _ = _ended(self._process)
        self._log.close()
        return cpu


class Used(NamedTuple):
    """Resources that a run has taken. On a busy machine the seconds of CPU say more than those of the clock."""

    seconds: float
    cpu: float
    rss_mb: float


def _run(folder: Path, url: str, days: int, output: str, *, html: bool = False) -> Used:
    """Run the command. `html`: with the page, for which the answers are read once more."""
    words = [
        "backtest", "--rules", str(folder / "rules.yaml"), "--prometheus", url, "--from", _moment(START),
        "--to", _moment(START + days * DAY - STEP_SECONDS), "--cache", str(folder / "cache"), "-o", "json",
        *(["--html", str(folder / "page.html")] if html else []),
    ]  # fmt: skip
    began = time.perf_counter()
    with (folder / output).open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "reactor.cli.main", *words], env=environment(), stdout=out, stdin=subprocess.DEVNULL
        )
        code, cpu, rss_mb = _ended(process)
    if code:
        raise RuntimeError(f"reactor backtest ended with {code}")
    return Used(time.perf_counter() - began, cpu, rss_mb)


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, float, float]:
    """Wait for a process, and give its exit code, its seconds of CPU and its largest memory in MB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # else Popen would wait for it once more
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _moment(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    print(json.dumps(asyncio.run(backtest(*given)).as_json(), indent=2))
