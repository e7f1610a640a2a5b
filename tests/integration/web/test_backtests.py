"""Backtests on the page: who may read them, what their scripts may do, and the command that writes one."""

from __future__ import annotations

import os
import shlex
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from yarl import URL

from reactor.settings.model import load
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from tests.browser import Browser
from tests.integration.backtest.recorded import Recorded, recorded
from tests.integration.web.conftest import RULES, Scene, Start, bearer, running

pytestmark = pytest.mark.long

SOURCE = """sources:
- {name: error-rate, kind: PrometheusQuery, prometheus: main, query: errors, everySeconds: 30,
   target: 'service/east/shop/{service}', unhealthyWhen: {above: 0.05}}
rules:"""
PROGRAM = "from reactor.cli.backtest import backtest; backtest(prog_name='reactor backtest')"
SECRET = "not for everybody"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a page, beside a file that is not in it."""
    inside = tmp_path / "back tests"
    inside.mkdir()
    (inside / "week.html").write_text("<!doctype html><title>A week</title>")
    (tmp_path / "secret.html").write_text(SECRET)
    (inside / "link.html").symlink_to(tmp_path / "secret.html")
    (inside / "nowhere.html").symlink_to(tmp_path / "gone.html")
    (inside / "folder.html").mkdir()
    (inside / "notes.txt").write_text(SECRET)
    return inside


async def asked(scene: Scene, path: str, **headers: str) -> tuple[int, str, Any]:
    async with scene.http.get(URL(scene.url + path, encoded=True), headers=headers) as answer:
        return answer.status, await answer.text(), answer.headers


async def test_a_backtest_is_for_who_may_view_and_nothing_else_of_the_disk_is(start: Start, folder: Path) -> None:
    scene = await start(users=True, backtests=str(folder))
    status, body, _ = await asked(scene, "/backtests/week.html")
    assert (status, "A week" in body) == (401, False)
    status, body, headers = await asked(scene, "/backtests/week.html", **bearer("vera"))
    assert (status, "A week" in body, headers["Content-Type"]) == (200, True, "text/html; charset=utf-8")
    # It names no script, so none runs; and whatever runs is cut off from the page's origin.
    policy = headers["Content-Security-Policy"]
    assert "script-src 'none'" in policy
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    for path in ("secret.html", "../secret.html", "..%2Fsecret.html", "%2e%2e/secret.html", "..%5csecret.html",
                 "link.html", "nowhere.html", "folder.html", "notes.txt", ".html", "..html", "week.html/x",
                 "week%00.html", f"{quote(str(folder))}/week.html", "", "x" * 200 + ".html"):  # fmt: skip
        status, body, _ = await asked(scene, f"/backtests/{path}", **bearer("vera"))
        assert (status, SECRET in body) == (404, False), path


async def test_without_the_setting_no_backtest_is_served(start: Start, folder: Path) -> None:
    scene = await start()
    assert (await asked(scene, "/backtests/week.html"))[0] == 404
    rows = (await scene.get("/api/v1/rules"))[1]["rules"]
    assert {(len(row["backtests"]), row["backtestCommand"]) for row in rows} == {(0, "")}


def configured(tmp_path: Path, server: Recorded, folder: Path) -> Path:
    """A settings file of a process whose rules have a past."""
    rules = tmp_path / "the rules.yaml"
    rules.write_text(RULES.replace("rules:", SOURCE))
    file = tmp_path / "reactor.yaml"
    file.write_text(yaml.safe_dump({
        "ruleFiles": [str(rules)], "name": "me", "prometheus": {"main": {"url": server.url}},
        "clusters": {"east": {"kubeconfig": str(tmp_path / "none"), "region": "eu"}},
        "receiver": {"listen": "127.0.0.1:0"}, "web": {"listen": "127.0.0.1:0", "backtests": str(folder)},
        "bus": {"store": str(tmp_path / "nats"), "partitions": 4},
    }))  # fmt: skip
    return file


async def test_a_rule_shows_a_command_that_runs_as_it_is_and_then_links_to_what_it_wrote(
    tmp_path: Path, folder: Path, browser: Browser
) -> None:
    async with recorded() as server:
        server.says = {
            "errors": [({"service": "checkout"}, lambda second: 0.4 if second % 40_000 < 900 else 0.01)],
            NEWEST_SCRAPE: [({}, lambda second: second - 5)],
        }
        async with running(load(configured(tmp_path, server, folder))) as scene:
            await browser.go(f"{scene.url}/#/rules/checkout")
            text = await browser.until("document.querySelector('#main code, main code')?.textContent")
            words = shlex.split(text)
            await browser.looks("rule-with-command")
            assert words[:2] == ["reactor", "backtest"]
            assert await browser.ask("document.querySelector('a[href^=\"/backtests/\"]')") is None
            process = await create_subprocess_exec(
                sys.executable, "-c", PROGRAM, *words[2:], stdout=PIPE, stderr=PIPE, cwd="/",
                env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            )  # fmt: skip
            _, problems = await process.communicate()
            assert process.returncode == 0, problems.decode()

            link = "document.querySelector('a[href^=\"/backtests/\"]')"
            assert await browser.until(f"{link}?.getAttribute('href')") == "/backtests/backtest.html#rule-0"
            assert "Try it on the past" not in await browser.ask("document.body.innerText")
            await browser.looks("rule-with-backtest")
            async with browser.page.expect_navigation(url="**/backtests/*"):
                await browser.ask(f"{link}.click()")
            await browser.until("document.querySelector('h2#rule-0')?.textContent === 'checkout'")
            assert browser.violations() == []
            # Its own script runs: it zooms. It has no cookie, and asks nothing of the API.
            await browser.ask("document.getElementById('closer').click()")
            assert await browser.ask("document.querySelector('svg.lane').getAttribute('viewBox')") == "250 0 500 20"
            assert await browser.ask("self.origin") == "null"
            assert await browser.ask("fetch('/api/v1/status').then(() => 'answered', () => 'refused')") == "refused"
