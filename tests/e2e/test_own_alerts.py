"""Each alert about the reactor fires on its real cause and ends with it; each panel of the dashboards has an answer."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest

from bus.embedded import EmbeddedServer
from reactor.demo.kube.faults import Fault, StatusFault
from tests.e2e.alerts import body, firing, resolved
from tests.e2e.conftest import MakeReactor
from tests.e2e.own_alerts import ends, fires, panels, rules, silent_panels, title, watching
from tests.e2e.rulefiles import ALERTS, document, failover, rewrite
from tests.e2e.servers import Prometheus
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told
from tests.ports import free_port

ASKS = failover("asks", selector="team=asks", mode="Approve")
RULES = document(ALERTS, rules=failover() + ASKS).replace(
    "cluster: east}", "cluster: east, staleSeconds: 5, refreshSeconds: 2}", 1
)
UNANSWERED = """
- {name: unanswered, kind: PrometheusQuery, prometheus: gone, query: up, everySeconds: 0.3, target: "custom/{job}"}
"""
WORDS = ("--comment", "INC-7", "--by", "ann", "--yes")
LATE_SECONDS = 2.0
"""Longer than the second in which a fact should be decided on."""
ACTS = {"actions", "action", "decisions", "holds", "held", "rule problems", "refresh requests"}
SILENT = {
    "rules": {"quarantined messages", "rule reloads", "source errors", "watch restarts", "loop failures"},
    "outside": ACTS | {"webhook alerts", "watch restarts", "loop failures"},
    "processes": ACTS
    | {"quarantined messages", "rule reloads", "source errors", "webhook", "webhook alerts", "webhook posts"},
}
"""The panels that may have no answer in one of these tests, as what they show is not made to happen in it."""
BUDGETS = [f"Reactor{what}Budget{pace}" for what in ("Decision", "Knowledge") for pace in ("Fast", "Slow")]


def ports() -> tuple[dict[str, Any], str]:
    """Settings that let a reactor listen on the same ports after each start, and where it is scraped."""
    health = f"127.0.0.1:{free_port()}"
    return {
        "receiver": {"listen": f"127.0.0.1:{free_port()}"}, "health": {"listen": health},
        "prometheus": {"gone": {"url": f"http://127.0.0.1:{free_port()}"}}, "notifiers": {"ops": {"kind": "log"}},
    }, health  # fmt: skip


async def told_bad(service: Service) -> float:
    """Number of observations by which the endpoints of a Service were said to be Unhealthy."""
    return await service.metric("reactor_observations_total", source="readiness", status="Unhealthy")


@pytest.mark.long
async def test_what_a_rule_cannot_do_or_has_done(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    shop.splits(["cart", "checkout"], "fallback")
    shop.split("asked", "fallback", labels={"team": "asks"})
    for name in ("cart", "checkout", "asked"):
        shop.endpoints(name, ready=2)
    settings, scraped = ports()
    async with reactor(RULES, **settings) as service, watching(tmp_path / "prometheus", scraped) as prometheus:
        await service.settled(3)
        refused = shop.east.faults.add(Fault(StatusFault(500), verb="patch", resource="trafficsplits"))
        shop.endpoints("checkout", ready=0)
        await fires(prometheus, "ReactorActionsFail")
        refused.remove()
        await fires(prometheus, "ReactorFailedOverForLong")
        shop.endpoints("fallback", ready=0)
        await fires(prometheus, "ReactorHeld")
        shop.endpoints("fallback", ready=2)
        await ends(prometheus, "ReactorHeld", "ReactorActionsFail")
        shop.endpoints("checkout", ready=2)
        await ends(prometheus, "ReactorFailedOverForLong")

        assert await service.post(body(firing("cart"))) == 200
        await until(lambda: shop.moves("cart") == ["away"], "cart is failed over")
        assert await service.post(body(resolved("cart"))) == 200  # and no query confirms it
        await fires(prometheus, "ReactorHeldAfterFailover")
        told = await told_bad(service)

        async def witnessed() -> bool:
            return await told_bad(service) > told

        shop.endpoints("cart", ready=0)
        await until_told(witnessed, "the endpoints were bad in the same outage")
        shop.endpoints("cart", ready=2)
        await ends(prometheus, "ReactorHeldAfterFailover", "ReactorFailedOverForLong")

        shop.endpoints("asked", ready=0)
        await fires(prometheus, "ReactorAwaitsApproval")
        shop.endpoints("asked", ready=2)
        await ends(prometheus, "ReactorAwaitsApproval")
        await service.printed("pause", "shop", *WORDS)
        await fires(prometheus, "ReactorPausedForLong")
        await service.printed("resume", "shop", *WORDS)
        await ends(prometheus, "ReactorPausedForLong")
        assert await silent_panels(prometheus) <= SILENT["rules"]


@pytest.mark.long
async def test_what_comes_from_outside(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    shop.split("checkout", "fallback")
    settings, scraped = ports()
    async with (
        reactor(document(UNANSWERED, ALERTS, rules=failover()), **settings) as service,
        watching(tmp_path / "prometheus", scraped) as prometheus,
    ):
        await fires(prometheus, "ReactorSourceErrors")
        assert await service.post(b"{}", to="unknown") == 404
        await fires(prometheus, "ReactorRefusesPosts")
        await publish_garbage(service)
        await fires(prometheus, "ReactorQuarantines")
        rewrite(service, "rules: [")
        await fires(prometheus, "ReactorRuleFilesInvalid")
        rewrite(service, RULES)
        await ends(
            prometheus, "ReactorRuleFilesInvalid", "ReactorSourceErrors", "ReactorRefusesPosts", "ReactorQuarantines"
        )
        assert await silent_panels(prometheus) <= SILENT["outside"]


async def publish_garbage(service: Service) -> None:
    connection = await nats.connect(str(service.bus_url))
    await connection.jetstream().publish("reactor.observations.readiness.x", b"\xff")
    await connection.close()


@pytest.mark.long
@pytest.mark.timeout(600)  # it waits for time to pass, five times twenty seconds
async def test_what_the_processes_and_the_bus_do(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    shop.split("checkout", "fallback")
    settings, scraped = ports()
    others, also_scraped = ports()
    async with EmbeddedServer(tmp_path / "nats") as bus:
        front = reactor(RULES, name="front", bus={"url": bus.url}, **settings)
        decider = reactor(RULES, name="decider", bus={"url": bus.url}, **others)
        front._argv += ["--roles", "observer,receiver,router,executor"]
        decider._argv += ["--roles", "decider"]
        async with front, decider, watching(tmp_path / "prometheus", scraped, also_scraped) as prometheus:
            await decider.settled(1)
            async with hardly_running(decider):
                await fires(prometheus, "ReactorDecisionBudgetFast", "ReactorDecisionBudgetSlow")
            shop.east.faults.add(Fault(StatusFault(500), resource="endpointslices"))
            shop.east.cut_watches(resource="endpointslices")
            await fires(prometheus, "ReactorKnowledgeBudgetFast", "ReactorKnowledgeBudgetSlow")
            shop.east.faults.clear()
            await ends(prometheus, *BUDGETS)

            os.kill(bus.pid, signal.SIGSTOP)
            await fires(prometheus, "ReactorBusDown", "ReactorBusBudgetFast", "ReactorBusBudgetSlow")
            os.kill(bus.pid, signal.SIGCONT)
            await ends(prometheus, "ReactorBusDown", "ReactorBusBudgetFast", "ReactorBusBudgetSlow")
            await decider.stop()
            await fires(prometheus, "ReactorPartitionsUnowned", "ReactorDown")
            begun = ""
            for _ in range(5):  # four changes
                await decider.start()
                begun = await scraped_again(prometheus, also_scraped, begun)
                await decider.stop()
            await fires(prometheus, "ReactorRestartsAgainAndAgain")
            await decider.start()
            await ends(prometheus, "ReactorPartitionsUnowned", "ReactorDown", "ReactorRestartsAgainAndAgain")
            assert await silent_panels(prometheus) <= SILENT["processes"]


@asynccontextmanager
async def hardly_running(service: Service) -> AsyncIterator[None]:
    """The process gets a moment of the processor every few seconds, as on a machine that is far too small."""

    async def pulse() -> None:
        while True:
            service.freeze()
            await asyncio.sleep(LATE_SECONDS)
            service.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.3)

    pulsing = asyncio.create_task(pulse())
    try:
        yield
    finally:
        pulsing.cancel()
        service.process.send_signal(signal.SIGCONT)


async def scraped_again(prometheus: Prometheus, address: str, before: str) -> str:
    """Wait until Prometheus has a sample of the process that runs there now, which began at another time than the one
    before. Gives when it began. That the address is `up` may still be said of the one before."""

    async def begun() -> str | None:
        answer = await prometheus.get(f"/api/v1/query?query=process_start_time_seconds{{instance='{address}'}}")
        return next((at for one in answer["data"]["result"] if (at := str(one["value"][1])) != before), None)

    return await until_told(begun, f"{address} is scraped")


def test_each_panel_has_an_answer_in_one_of_these_tests() -> None:
    assert set.intersection(*SILENT.values()) == set()
    assert set.union(*SILENT.values()) <= {title(panel) for panel in panels()}


def given(function: str) -> set[str]:
    """The alerts that are given to a function in this file: literals, or the list BUDGETS."""
    names: set[str] = set()
    for call in ast.walk(ast.parse(Path(__file__).read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == function:
            for one in call.args[1:]:
                names |= {str(one.value)} if isinstance(one, ast.Constant) else set(BUDGETS)
    return names


def test_each_alert_is_made_to_fire_here_and_to_end() -> None:
    assert given("fires") == given("ends") == {rule["alert"] for rule in rules() if "alert" in rule}
