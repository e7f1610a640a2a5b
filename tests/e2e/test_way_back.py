"""A rule on an error ratio, with requests that follow the weights: it leaves, tries, stays away, and comes back.

A real Prometheus counts real requests to real services. Without traffic the ratio is 0/0, and nobody knows.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import get_running_loop
from pathlib import Path

from tests.e2e.conftest import MakeReactor
from tests.e2e.requests import serving
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.servers import Prometheus
from tests.e2e.shop import Shop
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
    trial: {{percent: 20, seconds: 6}}
    backoff: {{factor: 2, maxSeconds: 12}}
"""
BUSY = 8.0
"""What a machine that is busy with other things may add."""


async def test_it_leaves_tries_stays_away_while_errors_last_and_comes_back(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    shop.split("checkout", "fallback")
    async with serving("checkout", "fallback") as traffic:
        sending = asyncio.create_task(traffic.send(shop, "checkout"))
        rules = RULES.format(fallback=traffic.services["fallback"].address)
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[traffic.metrics])
        async with prometheus, reactor(rules, prometheus={"main": {"url": prometheus.url}}) as service:
            await service.settled(1)
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
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending


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
        code, said = await service.answered("traffic", "failover", "shop", "--to", "nobody", *words)
        assert (code, "nobody is none of the backends" in said) == (1, True), said

        (service.config.parent / "rules.yaml").write_text("rules: [", encoding="utf-8")
        said = await service.printed("traffic", "failover", "shop", "--for", "1h", *words)
        assert "followed, until" in said, said
        await until(lambda: shop.moves("cart") == ["away"], "traffic has left by a person's word")
        said = await service.printed("traffic", "list", "-o", "json")
        assert '"state": "Overridden"' in said, said
        await service.printed("pause", "*", *words)
        code, said = await service.answered("traffic", "failback", "shop", *words)
        assert (code, "refused: " in said, "asked for it: paused by" in said) == (1, True, True), said
        await service.printed("resume", "*", *words)

        said = await service.printed("traffic", "release", "shop", *words)
        assert "the rule decides" in said, said
        await until(lambda: shop.moves("cart") == ["away", "home"], "the rule has brought it back")
        audit = await service.printed("audit", "export")
        for word in ("FailoverTraffic", "FailbackTraffic", "ReleaseTraffic"):
            assert f"said {word}: CHG-1" in audit
