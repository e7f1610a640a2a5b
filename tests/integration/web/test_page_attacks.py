"""Markup in the labels and annotations of real alerts, posted to the real webhook, and seen in Chromium."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.browser import Browser
from tests.e2e.alerts import body, firing
from tests.integration.web.conftest import ROLES, RULES, XSS, running, settings

ALERTS = """
sources:
- name: alerts
  kind: AlertmanagerWebhook
  target: service/east/shop/{service}
"""
MARKUP = 'x"><svg onload=document.title="owned">'
PAGES = ("now", "rules/checkout", "target/service/east/shop/checkout", "actions", "map")


async def test_markup_in_labels_and_annotations_of_alerts_is_text_on_every_page(
    tmp_path: Path, browser: Browser
) -> None:
    given = settings(tmp_path, rules=RULES + ALERTS)
    async with running(given, ROLES | {"receiver"}) as scene:
        await scene.break_checkout()
        labels = {"alertname": XSS, "service": "checkout", "severity": MARKUP}
        hostile = [
            firing("checkout", labels=labels, annotations={"summary": XSS, "description": MARKUP}),
            firing("other", labels={**labels, "service": MARKUP}, fingerprint=hashlib.sha256(b"2").hexdigest()[:16]),
        ]
        post = scene.http.post(f"{scene.app.receiver_url}/v1/alerts/alerts", data=body(*hostile),
                               headers={"Content-Type": "application/json"})  # fmt: skip
        async with post as answer:
            assert answer.status == 200, await answer.text()
        await browser.go(f"{scene.url}/")
        shown = []
        for page in PAGES:
            await browser.ask(f"location.hash = '#/{page}'")
            await browser.until("document.querySelector('main h1') !== null")
            if page.startswith("target"):
                await browser.until(f"document.querySelector('main')?.textContent.includes({XSS!r})")
            shown.append(XSS in await browser.ask("document.querySelector('main').textContent"))
            assert (
                await browser.ask("document.querySelectorAll('#app [onload], #app [onerror], #app script').length") == 0
            )
            assert "owned" not in await browser.ask("document.title")
        assert any(shown)  # it came this far
        assert browser.violations() == []
