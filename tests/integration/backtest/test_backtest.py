"""Whole backtests against a recorded Prometheus: what is asked, the result, and all ways not to answer."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from reactor.clients.instant_queries import QueryFailed, QueryRefused
from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.backtest_run import Backtested, BacktestRequest, run
from reactor.workbench.backtest.backtest_text import lines
from reactor.workbench.backtest.grid import CHUNK_POINTS
from reactor.workbench.backtest.history_builder import BacktestPlan, BacktestSpan
from reactor.workbench.backtest.page import page
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from rules import loader
from rules.rehearsal.backtest.backtest_report import as_json
from rules.rehearsal.backtest.backtester import Sweep
from tests.integration.backtest.recorded import Recorded, recorded, within

START = 1_767_225_600
SHOP = """
apiVersion: reactor/v1
sources:
- {name: up, kind: PrometheusQuery, prometheus: main, query: up_ratio, everySeconds: 30, signal: health,
   target: 'service/east/shop/{service}', unhealthyWhen: {below: 0.5}}
- {name: am, kind: AlertmanagerWebhook, matchers: 'alertname="Slow"', target: 'custom/slow/{service}',
   confirm: {prometheus: main, query: fast, everySeconds: 30}}
rules:
- name: checkout
  kind: TrafficFailover
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  primary: checkout
  backends: [{service: checkout}, {service: fallback}]
  tolerationSeconds: 60
  recoverySeconds: 120
- {name: people, kind: Notification, mode: Enforce, match: custom/slow/*, message: '{target} is {status}'}
"""


@pytest.fixture
async def prometheus() -> AsyncIterator[Recorded]:
    """Two hours: a flap of a minute, an outage of ten minutes, and a slow alert that is confirmed late."""
    async with recorded() as server:
        bad = within((START + 600, START + 630), (START + 1800, START + 2400), there=0.0)
        server.says = {
            "up_ratio": [
                ({"service": "checkout"}, lambda second: 1.0 if bad(second) is None else 0.0),
                ({"service": "fallback"}, lambda _: 1.0),
            ],
            NEWEST_SCRAPE: [({}, lambda second: second - 5)],
            'ALERTS{alertstate="firing"}': [
                ({"__name__": "ALERTS", "alertstate": "firing", "alertname": "Slow", "service": "checkout"},
                 within((START + 3600, START + 3900))),
                ({"__name__": "ALERTS", "alertstate": "firing", "alertname": "Other", "service": "x"}, lambda _: 1.0),
            ],
            "fast": [({"service": "checkout"}, within((START + 4500, START + 7200)))],
        }  # fmt: skip
        yield server


def request(
    server: Recorded, *, text: str = SHOP, other: str | None = None, hours: float = 2, step: int | None = None,
    sweep: Sweep | None = None, cache: Path | None = None, **endpoint: Any,
) -> BacktestRequest:  # fmt: skip
    to_ms = (START + round(hours * 3600)) * 1000
    span = BacktestSpan(START * 1000, to_ms, to_ms + 10**10, step)
    plans = [
        BacktestPlan(loader.load_rules([("shop.yaml", one)]), span, ("main",))
        for one in ([text] if other is None else [text, other])
    ]
    endpoints = {"main": Endpoint.model_validate({"url": server.url, **endpoint})}
    return BacktestRequest(plans[0], endpoints, plans[1] if other is not None else None, sweep, cache)


async def done(wanted: BacktestRequest) -> Backtested:
    return await run(wanted, lambda *_: None)


def report(of: Backtested) -> dict[str, Any]:
    return as_json(of.played, of.within, notes=of.notes, pairs=of.pairs, swept=of.swept)


async def test_the_story_of_two_hours(prometheus: Recorded) -> None:
    found = report(await done(request(prometheus)))
    checkout, people = found["rules"]
    assert found["notes"] == []
    told = [(mark["type"], mark["at"], mark.get("move")) for mark in checkout["timeline"]]
    assert told == [
        ("flap", "2026-01-01T00:10:00Z", None), ("action", "2026-01-01T00:31:00Z", "Away"),
        ("action", "2026-01-01T00:42:00Z", "Home"),
    ]  # fmt: skip
    assert (checkout["failovers"], checkout["falseFailovers"], checkout["flapsAvoided"]) == (1, 0, 1)
    assert checkout["reactionSeconds"] == {"median": 60, "max": 60}
    assert checkout["failedOverSeconds"] == 660
    # Resolved at 01:05, and not believed before it was confirmed at 01:15.
    assert [(mark["at"][11:16], mark["move"]) for mark in people["timeline"]] == [("01:00", "Away"), ("01:15", "Home")]


async def test_each_chunk_is_asked_once_and_within_prometheus_limit(prometheus: Recorded, tmp_path: Path) -> None:
    wanted = request(prometheus, hours=60, cache=tmp_path)
    first = await done(wanted)
    asked = len(prometheus.asked)
    assert {form["query"] for form in prometheus.asked} == {*prometheus.says}
    assert len({json.dumps(form, sort_keys=True) for form in prometheus.asked}) == asked
    for form in prometheus.asked:
        assert float(form["start"]) % (CHUNK_POINTS * 30) == 0
    second = await done(wanted)
    assert len(prometheus.asked) == asked  # all of it was in the cache
    assert json.dumps(report(first)) == json.dumps(report(second))
    assert page(first) == page(second)


async def test_a_cache_entry_that_was_damaged_is_fetched_again(prometheus: Recorded, tmp_path: Path) -> None:
    wanted = request(prometheus, cache=tmp_path)
    first, asked = report(await done(wanted)), len(prometheus.asked)
    for path, damage in zip(sorted(tmp_path.iterdir()), (b"", b"x", None, None), strict=False):
        raw = path.read_bytes()
        path.write_bytes(damage if damage is not None else raw[:-9] + bytes(9))
    assert report(await done(wanted)) == first
    assert len(prometheus.asked) == 2 * asked


async def test_without_a_cache_nothing_stays(prometheus: Recorded, tmp_path: Path) -> None:
    await done(request(prometheus))
    asked = len(prometheus.asked)
    await done(request(prometheus))
    assert len(prometheus.asked) == 2 * asked


async def test_while_prometheus_was_away_its_silence_is_no_recovery(prometheus: Recorded) -> None:
    bad = within((START + 1800, START + 2700), there=0.0)
    prometheus.says["up_ratio"] = [({"service": "checkout"}, bad), ({"service": "fallback"}, lambda _: 1.0)]
    # Scrapes end at half past; samples of the answers after that are only looked back at.
    prometheus.says[NEWEST_SCRAPE] = [({}, lambda second: min(second, START + 1830))]
    checkout = report(await done(request(prometheus)))["rules"][0]
    assert [mark["move"] for mark in checkout["timeline"] if mark["type"] == "action"] == ["Away"]
    assert next(row for row in checkout["targets"] if row["target"].endswith("fallback"))["unknownSeconds"] > 5000


async def test_a_server_without_scrapes_says_so(prometheus: Recorded) -> None:
    del prometheus.says[NEWEST_SCRAPE]
    assert "it is not known when Prometheus was away" in report(await done(request(prometheus)))["notes"][0]


async def test_another_version_is_compared(prometheus: Recorded) -> None:
    other = SHOP.replace("tolerationSeconds: 60", "tolerationSeconds: 0")
    of = await done(request(prometheus, other=other))
    found = report(of)["compare"]
    assert [(one["at"][11:16], one["move"]) for one in found["onlyB"]] == [("00:10", "Away"), ("00:12", "Home")]
    # Who has failed again soon after its return waits twice as long.
    assert [(one["laterSeconds"], one["move"]) for one in found["moved"]] == [(-60, "Away"), (120, "Home")]
    assert found["onlyA"] == []
    assert found["same"] == 2  # both words to people
    assert any(line.startswith("  + only B") for line in lines(of))


async def test_a_sweep_trades_reaction_for_false_failovers(prometheus: Recorded) -> None:
    of = await done(request(prometheus, sweep=Sweep("tolerationSeconds", (0, 60, 900))))
    rows = report(of)["sweep"]["rows"]
    checkout = [row["rules"]["checkout"] for row in rows]
    assert [row["failovers"] for row in checkout] == [2, 1, 0]
    assert [row["falseFailovers"] for row in checkout] == [1, 0, 0]
    assert [row["flapsAvoided"] for row in checkout] == [0, 1, 2]
    assert "polyline" in page(of)


async def test_the_page_needs_nothing_from_elsewhere_and_escapes_what_it_shows(prometheus: Recorded) -> None:
    evil = '<script>alert("x")</script>'
    prometheus.says["up_ratio"][0][0]["extra"] = evil  # type: ignore[index]
    text = SHOP.replace("{target} is {status}", evil.replace('"', "") + " {target}")
    html = page(await done(request(prometheus, text=text)))
    assert html.count("<script") == 1  # the page's own, which zooms
    policy = re.search(r"script-src &#x27;sha256-(.*?)&#x27;", html)
    script = re.search(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    assert policy is not None
    assert script is not None
    assert base64.b64decode(policy[1]) == hashlib.sha256(script[1].encode()).digest()
    assert "&lt;script&gt;" in html
    assert "http:" not in html
    assert "https:" not in html
    assert "url(" not in html
    assert "<svg" in html


def said(body: object, status: int = 200) -> Any:
    return lambda: web.json_response(body, status=status)


def plain(text: str, status: int = 200, **headers: str) -> Any:
    return lambda: web.Response(text=text, status=status, headers=headers)


def matrix(*series: object, kind: str = "matrix", **more: object) -> Any:
    return said({"status": "success", **more, "data": {"resultType": kind, "result": series}})


HEAD = '{"status":"success","data":{"resultType":"matrix","result":['
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (said({"status": "error", "error": "1:3: parse error"}, 400), QueryRefused, "parse error"),
    (said({"status": "error", "error": "too many samples"}, 422), QueryRefused, "too many"),
    (plain("who are you", 401), QueryRefused, "401"),
    (plain("", 302, Location="/login"), QueryRefused, "302"),
    (plain("starting", 503), QueryFailed, "starting"),
    (plain("<html>login</html>"), QueryFailed, "no answer of Prometheus"),
    (plain(HEAD + '{"metric":{},"val'), QueryFailed, "breaks off"),
    (plain(HEAD), QueryFailed, "breaks off"),
    (matrix(kind="vector"), QueryFailed, "no answer of Prometheus"),
    (matrix(isPartial=True), QueryFailed, "partial"),
    (matrix({"metric": {}, "values": [["x", "1"]]}), QueryFailed, "not Prometheus's JSON"),
    (matrix({"metric": {}, "values": [[1, "1"]]}), QueryFailed, "none that was asked for"),
    (matrix({"metric": {}, "histograms": []}), QueryRefused, "histograms"),
]


@pytest.mark.parametrize(("answer", "error", "words"), ERRORS)
async def test_no_answer_is_an_error_that_says_why(
    prometheus: Recorded, answer: Any, error: type[Exception], words: str
) -> None:
    prometheus.answer = answer
    with pytest.raises(error, match=words):
        await done(request(prometheus))


async def test_an_answer_that_fails_once_is_asked_for_again(prometheus: Recorded) -> None:
    def first() -> web.Response:
        prometheus.answer = None
        return web.Response(status=503, text="starting")

    prometheus.answer = first
    assert (await done(request(prometheus))).played.stories["checkout"].acts


async def test_too_many_series_are_refused(prometheus: Recorded) -> None:
    with pytest.raises(QueryRefused, match="maxSeries"):
        await done(request(prometheus, maxSeries=1))


async def test_credentials_go_along_and_not_into_messages(prometheus: Recorded, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    await done(request(prometheus, bearerTokenFile=str(token)))
    assert {headers["Authorization"] for headers in prometheus.headers} == {"Bearer secret"}
