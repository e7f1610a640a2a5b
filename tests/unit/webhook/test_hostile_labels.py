"""Labels that mean something elsewhere: in a subject, a key, a path, a template, a page. Here they are text."""

from __future__ import annotations

import re

import pytest

from bus import subjects
from reactor.runtime.visible import visible
from tests.unit.webhook.builders import World, alert, counted, source

TAKEN = {
    "wildcards": ("*.>", "*.>"),
    "an empty token": ("a..b.", "a..b."),
    "a space": ("a b", "a b"),
    "an emoji": ("\N{FIRE}", "\N{FIRE}"),
    "right to left": ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
    "a way up": ("../../east", "..%2F..%2Feast"),
    "a way up, encoded": ("..%2Feast", "..%252Feast"),
    "a template": ("{{ .Values }}", "{{ .Values }}"),
    "a template of ours": ("{target}", "{target}"),
    "markup": ("<script>alert(1)</script>", "<script>alert(1)<%2Fscript>"),
    "a formula": ("=cmd|'/c calc'!A1", "=cmd|'%2Fc calc'!A1"),
    "a pattern": ("**", "**"),
}
REFUSED = {
    "CR and LF": "a\r\nb", "NUL": "a\0b", "a tab": "a\tb", "ESC": "\x1b[2J", "C1": "\x9b31m", "DEL": "\x7f",
    "a bidi override": "\u202ea", "a zero width space": "a\u200bb", "a line separator": "a\u2028b",
    "a lone surrogate": "\ud800", "4 kB": "x" * 4096, "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize(("label", "segment"), TAKEN.values(), ids=TAKEN)
async def test_a_label_is_one_segment_of_its_target_and_text(label: str, segment: str) -> None:
    world = World()
    async with world.lifecycle(source(target="service/{cluster}/shop/web")) as lifecycle:
        await world.post(lifecycle, alert(cluster=label), at=0)
    (said,) = world.told
    assert said.target == f"service/{segment}/shop/web"
    assert said.labels["cluster"] == label
    assert visible(said.target) == said.target
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,43}", subjects.token(said.target))


@pytest.mark.parametrize("label", REFUSED.values(), ids=REFUSED)
async def test_a_label_that_makes_no_target_costs_its_own_alert(label: str) -> None:
    world = World()
    before = counted("reactor_webhook_alerts_total", source="am", fate="quarantined")
    async with world.lifecycle(source(target="service/{cluster}/shop/web")) as lifecycle:
        await world.post(lifecycle, alert("a", cluster=label), alert("b", cluster="east"), at=0)
    assert [said.target for said in world.told] == ["service/east/shop/web"]
    assert counted("reactor_webhook_alerts_total", source="am", fate="quarantined") == before + 1
