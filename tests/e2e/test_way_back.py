"""A rule on an error ratio, with requests that follow the weights: it leaves, tries, stays away, and comes back.

A real Prometheus counts real requests to real services. Without traffic the ratio is 0/0, and health is Unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.conftest import MakeReactor
from tests.e2e.requests import Traffic, serving
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.servers import Alertmanager, Prometheus
from tests.e2e.shop import Shop
from tests.e2e.tap import tapping
from tests.e2e.waiting import until

RANGE, EVERY, TRIAL, LONGEST = 4.0, 0.5, 6.0, 12.0
RULES = """
apiVersion: reactor/v1
sources:
- name: errors
  kind: PrometheusQuery
  prometheus: main
  query: rate(errors_total{{service="checkout"}}[4s]) / rate(requests_total{{service="checkout"}}[4s])
  everySeconds: 0.5
  refreshSeconds: 1
  staleSeconds: 10
  target: service/east/shop/checkout
  unhealthyWhen: {{above: 0.2}}
- name: probe
  kind: HttpProbe
  target: service/east/shop/fallback
  url: http://{fallback}/healthz
  everySeconds: 0.5
  timeoutSeconds: 0.5
rules:
- name: checkout
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}}
  backends: [{{service: checkout}}, {{service: fallback}}]
  tolerationSeconds: 1
  recoverySeconds: 3
  failback:
    mode: Trial
    trial: {trial}
    backoff: {{factor: 2, maxSeconds: {longest:g}}}
"""
ALERTING = """
apiVersion: reactor/v1
sources:
- name: pages
  kind: AlertmanagerWebhook
  matchers: alertname="ErrorRatio"
  target: service/east/shop/{service}
  refreshSeconds: 1
  confirm: {prometheus: main, query: 'rate(requests_total[4s]) > 0', everySeconds: 0.5}
"""
ERROR_RATIO = {
    "alert": "ErrorRatio", "labels": {"severity": "page"},
    "expr": "rate(errors_total[4s]) / rate(requests_total[4s]) > 0.2",
}  # fmt: skip
QUICK = "{percent: 20, seconds: 6}"
BUSY = 8.0
"""Seconds that a busy machine may add."""


async def test_it_leaves_tries_stays_away_while_errors_last_and_comes_back(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    async with _served(shop, reactor, tmp_path, trial=QUICK, longest=LONGEST) as traffic:
        traffic.services["checkout"].fails_every = 2
        await until(lambda: shop.history("checkout")[:1] == [{"checkout": 0, "fallback": 1}], "it has left")
        tried = {"checkout": 20, "fallback": 80}
        away = {"checkout": 0, "fallback": 1}
        await until(lambda: shop.history("checkout")[1:2] == [tried], "it is tried")
        await until(lambda: shop.history("checkout")[2:3] == [away], "and left again", within=TRIAL + BUSY)
        await until(lambda: shop.history("checkout")[3:5] == [tried, away], "and again, for longer", within=60)
        waits = [write.at for write in shop.writes("checkout")]
        assert waits[3] - waits[2] > waits[1] - waits[0]

        traffic.services["checkout"].fails_every = 0
        healed = get_running_loop().time()
        home = {"checkout": 1, "fallback": 0}
        within = LONGEST + TRIAL + RANGE + 2 * EVERY + BUSY
        await until(lambda: shop.history("checkout")[-1] == home, "it is back", within=within)
        print(f"healed → back {get_running_loop().time() - healed:.1f} s; writes {len(shop.writes('checkout'))}")
        assert traffic.services["checkout"].counts["bad"] > 0


@pytest.mark.long
async def test_a_constant_fault_writes_seldom_and_hardly_any_request_meets_it(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    """In a tenth of the times of ten minutes with recoverySeconds and trial.seconds of 60; a third of them fails."""
    async with _served(shop, reactor, tmp_path, trial="{percent: 5, seconds: 6}", longest=360) as traffic:
        traffic.services["checkout"].fails_every = 3
        await until(lambda: len(shop.writes("checkout")) == 1, "it has left")
        before = traffic.counts
        await until(lambda: len(shop.writes("checkout")) == 5, "it was tried twice, and left again", within=100)
        after = traffic.counts - before
        print(f"{after['bad']} of {after['all']} requests failed after the first move")
        tried, away = {"checkout": 5, "fallback": 95}, {"checkout": 0, "fallback": 1}
        assert shop.history("checkout") == [away, tried, away, tried, away]
        assert after["bad"] <= 0.02 * after["all"]
        at = [write.at for write in shop.writes("checkout")]
        assert len([moment for moment in at if moment - at[0] <= 60]) <= 1 + 2 * 3
        assert at[3] - at[2] >= 2 * 6, "the second wait is twice the first, which is as long as a trial"


@pytest.mark.long
async def test_the_primarys_share_of_10000_requests_in_a_trial_is_its_percent_within_3_sigma(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    async with _served(shop, reactor, tmp_path, trial="{percent: 5, seconds: 30}", longest=60) as traffic:
        traffic.services["checkout"].fails_every = 2
        await until(lambda: len(shop.writes("checkout")) == 1, "it has left")
        traffic.services["checkout"].fails_every = 0
        await until(lambda: len(shop.writes("checkout")) == 2, "it is tried", within=60)
        assert shop.history("checkout")[-1] == {"checkout": 5, "fallback": 95}
        answered = await traffic.burst(shop, "checkout", 10_000)
        print(f"{answered['checkout']} of {answered.total()} requests of the trial")
        assert answered.total() >= 2000, "the machine is too slow for this test"
        sigma = (answered.total() * 0.05 * 0.95) ** 0.5
        assert abs(answered["checkout"] - 0.05 * answered.total()) <= 3 * sigma


async def test_an_alert_on_the_error_ratio_leaves_tries_and_comes_back_on_the_confirming_query(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    """As rules/library/alert_driven.yaml does it, through a real Alertmanager: resolved alone proves nothing."""
    shop.split("checkout", "fallback")
    async with serving("checkout", "fallback") as traffic, tapping() as tap:
        alertmanager = Alertmanager(tmp_path / "alertmanager", posts_to=[f"{tap.url}/v1/alerts/pages"])
        prometheus = Prometheus(
            tmp_path / "prometheus", scrapes=[traffic.metrics], alertmanagers=[alertmanager], alerts=[ERROR_RATIO]
        )
        rules = ALERTING + _part("- name: probe", QUICK, LONGEST, traffic.services["fallback"].address)
        settings = {
            "prometheus": {"main": {"url": prometheus.url}},
            "alertmanager": {"main": {"url": alertmanager.url}},
        }
        async with alertmanager, prometheus, reactor(rules, **settings) as service, _sending(traffic, shop):
            tap.forwards_to = service.url
            await service.settled(1)
            traffic.services["checkout"].fails_every = 2
            home, away, tried = ({"checkout": part, "fallback": rest} for part, rest in ((1, 0), (0, 1), (20, 80)))
            await until(lambda: shop.history("checkout")[:1] == [away], "it has left")
            await until(
                lambda: shop.history("checkout")[1:3] == [tried, away], "it is tried, and left again", within=60
            )
            traffic.services["checkout"].fails_every = 0
            await until(lambda: shop.history("checkout")[-1] == home, "it is back", within=90)
            assert shop.history("checkout")[-2] == tried


@contextlib.asynccontextmanager
async def _served(
    shop: Shop, reactor: MakeReactor, folder: Path, *, trial: str, longest: float
) -> AsyncIterator[Traffic]:
    """Requests by the weights, a Prometheus that counts them, and a reactor that knows all of it."""
    shop.split("checkout", "fallback")
    async with serving("checkout", "fallback") as traffic, _sending(traffic, shop):
        rules = RULES.format(fallback=traffic.services["fallback"].address, trial=trial, longest=longest)
        prometheus = Prometheus(folder / "prometheus", scrapes=[traffic.metrics])
        async with prometheus, reactor(rules, prometheus={"main": {"url": prometheus.url}}) as service:
            await service.settled(1)
            yield traffic


@contextlib.asynccontextmanager
async def _sending(traffic: Traffic, shop: Shop) -> AsyncIterator[None]:
    sending = asyncio.create_task(traffic.send(shop, "checkout"))
    try:
        yield
    finally:
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending


def _part(first: str, trial: str, longest: float, fallback: str) -> str:
    """The rule file's end, from this line on."""
    text = RULES.format(fallback=fallback, trial=trial, longest=longest)
    return text[text.index(first) :]


async def test_people_move_traffic_and_each_word_is_in_the_audit(shop: Shop, reactor: MakeReactor) -> None:
    words = ("--comment", "CHG-1", "--by", "ann", "--yes")
    shop.endpoints("cart", ready=2)
    shop.split("cart", "fallback")
    async with reactor(document(ALERTS, rules=failover(toleration=0))) as service:
        await service.settled(1)
        listed = await service.printed("traffic", "list")
        assert "cart=1 fallback=0" in listed, listed
        code, said = await service.answered("traffic", "failover", "shpo", *words)
        assert (code, "did you mean shop?" in said) == (1, True), said
        code, said = await service.answered("status", "shpo")
        assert (code, "did you mean shop?" in said) == (1, True), said
        assert "Watching" in await service.printed("status", "sh*")
        code, said = await service.answered("traffic", "failover", "shop", "--to", "nobody", *words)
        assert (code, "nobody is none of the backends" in said) == (1, True), said

        (service.config.parent / "rules.yaml").write_text("rules: [", encoding="utf-8")
        said = await service.printed("traffic", "failover", "shop", "--for", "1h", *words)
        assert "followed, until" in said, said
        await until(lambda: shop.moves("cart") == ["away"], "traffic has left by a person's word")
        said = await service.printed("traffic", "list", "-o", "json")
        assert '"state": "Overridden"' in said, said
        assert "pause 1 rule matching '*': shop" in await service.printed("pause", "*", *words)
        code, said = await service.answered("traffic", "failback", "shop", *words)
        assert (code, "refused: " in said, "asked for it: paused by" in said) == (1, True, True), said
        await service.printed("resume", "*", *words)

        said = await service.printed("traffic", "release", "shop", *words)
        assert "the rule decides" in said, said
        await until(lambda: shop.moves("cart") == ["away", "home"], "the rule has brought it back")
        audit = await service.printed("audit", "export")
        for word in ("FailoverTraffic", "FailbackTraffic", "ReleaseTraffic"):
            assert f"said {word}: CHG-1" in audit
