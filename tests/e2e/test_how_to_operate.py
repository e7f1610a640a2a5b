"""Commands of the how-to pages about a running reactor, run beside one in an emulated cluster."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import MakeReactor
from tests.e2e.followed import Followed, missing
from tests.e2e.natscli import why_not
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

pytestmark = pytest.mark.long

RULES = """\
apiVersion: reactor/v1
sources:
- {name: endpoints, kind: EndpointsWatch, cluster: east, namespace: shop, refreshSeconds: 1}
- name: alertmanager
  kind: AlertmanagerWebhook
  target: service/east/{namespace}/{service}
  onResolved: Healthy
rules:
- name: shop-checkout
  kind: TrafficFailover
  mode: Enforce
  signals: [endpoints]
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  backends: [{service: checkout}, {service: checkout-west}]
  tolerationSeconds: 1
  recoverySeconds: 1
  guards: {approval: {expireSeconds: 900}}
- {name: people, kind: Notification, mode: Enforce, match: service/*/shop/*, tolerationSeconds: 60, recoverySeconds: 60}
"""
TESTS = """\
apiVersion: reactor/v1
ruleFiles: [shop.yaml]
tests:
- name: nothing moves while all is well
  inputs:
  - {target: service/east/shop/checkout, signal: endpoints, values: Healthy x3}
  - {target: service/east/shop/checkout-west, signal: endpoints, values: Healthy x3}
  expect: []
"""
TOKEN = "token-of-ann-0123456789"


@asynccontextmanager
async def shop_reactor(shop: Shop, reactor: MakeReactor, folder: Path, rules: str = RULES) -> AsyncIterator[Service]:
    """A reactor whose folder is as the pages have it: rules/, reactor.yaml, .reactor/nats, webhook_token."""
    folder.mkdir()
    (folder / "rules").mkdir()
    (folder / "rules/shop.yaml").write_text(rules)
    (folder / "rules/shop_test.yaml").write_text(TESTS)
    for name in ("webhook_token", "ann_token"):
        (folder / name).write_text(TOKEN)
    for name in ("checkout", "checkout-west"):
        shop.endpoints(name, ready=2)
    shop.split("checkout", "checkout-west")
    service = reactor(
        rules, name=folder.name, ruleFiles=[str(folder / "rules/*.yaml")], bus={"store": str(folder / ".reactor/nats")},
        receiver={"listen": "127.0.0.1:0", "bearerTokenFiles": [str(folder / "webhook_token")]},
        web={
            "listen": "127.0.0.1:0", "users": [{"name": "ann", "role": "view", "tokenFile": str(folder / "ann_token")}]
        },
    )  # fmt: skip
    async with service:
        yield service


async def test_people_operate_it(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    async with shop_reactor(shop, reactor, tmp_path / "here") as service:
        with Followed("docs/how-to/operate.md", service.folder) as page:
            await page.run("export REACTOR_CONFIG")

            async def shows(*words: str) -> None:
                async def so() -> bool:
                    said = await service.printed("status")
                    return all(word in said for word in words)

                await until_told(so, f"the status has {words}")

            await shows("Watching", "checkout=1")
            assert "Do it?" in await page.run("reactor pause '*'", answers="y\n")
            assert "INC-7" in await page.run("reactor status")
            await page.run("reactor resume '*'", answers="y\n")
            await page.run("eval ")

            async def prints(start: str, answers: str = "") -> None:
                """It prints what the page shows."""
                shown = page.shown(start)
                printed = await page.run(start, answers=answers)
                assert missing(shown, printed) == [], printed

            await prints("reactor pause 'shop-*'", "y\n")
            shop.endpoints("checkout", ready=0)
            await shows("Held", "Paused")
            await prints("reactor resume", "y\n")
            await shows("AwaitingApproval")
            head, row = page.shown("reactor status").splitlines()
            printed = await page.run("reactor status")
            assert missing(head, printed) == []
            assert row.partition("AwaitingApproval")[2].partition("; until")[0] in printed
            await page.run("reactor approve", answers="y\n")
            await until(lambda: shop.moves("checkout") == ["away"], "what was approved is done")
            shop.endpoints("checkout", ready=2)
            await until(lambda: shop.moves("checkout") == ["away", "home"], "and it comes home")
            await shows("Watching")
            shop.endpoints("checkout", ready=0)
            await shows("AwaitingApproval")
            await page.run("reactor reject", answers="y\n")
            await shows("Rejected", "west is worse")
            shop.endpoints("checkout", ready=2)
            await shows("Watching")

            await prints("reactor traffic failover", "y\n")
            await page.run("reactor traffic list")
            await until(lambda: shop.moves("checkout")[-1:] == ["away"], "a person moved it")
            await page.run("reactor traffic failback", answers="y\n")
            await until(lambda: shop.moves("checkout")[-1:] == ["home"], "and back")
            await page.run("reactor traffic release", answers="y\n")

            found = shop.find("checkout")
            assert found is not None
            page.instead = {
                "shop-checkout/east/shop/TrafficSplit/checkout/3": found["metadata"]["annotations"]["reactor/decision"]
            }
            said = await page.run("reactor explain shop-checkout")
            for part in ("windows", "evidence", "decision", "guards", "write", "outcomes"):
                assert f"\n{part}\n" in said, part
            (service.folder / "rules/shop.yaml").write_text(RULES.replace("alertmanager", "alerts"))
            await prints("reactor explain --match")
            (service.folder / "new-rules").mkdir()
            slower = RULES.replace("tolerationSeconds: 1\n", "tolerationSeconds: 2\n")
            (service.folder / "new-rules/shop.yaml").write_text(slower)
            (service.folder / "rules/shop.yaml").write_text(RULES)
            await page.run("reactor audit export")
            assert "Different" in await page.run("reactor replay")
            await page.run("reactor replay", codes=(0, 1))


async def test_people_look_at_it(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    async with shop_reactor(shop, reactor, tmp_path / "here") as service:
        await until_told(
            lambda: service.metric("reactor_rule_state", rule="shop-checkout", state="Watching"), "it watches"
        )
        with Followed("docs/how-to/read-the-status.md", service.folder) as page:
            assert "RULE" in await page.run_all()
        with Followed("docs/how-to/find-what-is-wrong.md", service.folder) as page:
            said = await page.run("reactor doctor", codes=(0, 1))
            assert "with JetStream" in said
            (service.folder / "reactor.log").write_text(service.log.read_text())
            assert "files" in await page.run("reactor support-bundle")
        with Followed("docs/how-to/use-the-page.md", service.folder, TOKEN=TOKEN) as page:
            page.instead = {"https://reactor.example.org": await service.page()}
            assert page.take("reactor run").endswith("--config reactor.yaml --roles all,web")
            assert "shop-checkout" in await page.run("curl")
        with Followed("docs/how-to/wire-alertmanager.md", service.folder) as page:
            page.instead = {"http://127.0.0.1:8484": service.url}
            assert " 200 " in await page.run("curl")
        with Followed("docs/how-to/reload-rules.md", service.folder) as page:
            page.program("pidof", f"#!/bin/sh\necho {service.process.pid}\n")
            rules = service.folder / "rules/shop.yaml"
            rules.write_text(RULES.replace("tolerationSeconds: 60", "tolerationSeconds: 50"))
            await page.run("reactor check")
            await until_told(
                lambda: service.metric("reactor_rule_reloads_total", result="changed"), "it has the new rules"
            )
            rules.write_text(RULES.replace("  route:", "  rute:"))
            service.process.send_signal(signal.SIGHUP)
            await until_told(
                lambda: service.metric("reactor_rule_files_invalid"), "it says that it cannot use the rules"
            )
            assert "did you mean route?" in await page.run(
                "reactor status --config reactor.yaml" if 0 else "reactor status"
            )


@pytest.mark.skipif(bool(why_not()), reason=why_not())
async def test_a_script_publishes_what_it_sees(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    async with shop_reactor(
        shop, reactor, tmp_path / "here", rules=RULES.replace("match: service/*/shop/*", "match: service/east/shop/db")
    ) as service:
        with Followed("docs/how-to/publish-your-own-signal.md", service.folder) as page:
            assert '"stream":"REACTOR_INBOX"' in (await page.run_all()).replace(" ", "")
        with Followed("docs/events.md", service.folder) as page:
            await page.run_all()

        async def known() -> bool:
            return "service/east/shop/db" in await service.printed("status", "-o", "json")

        await until_told(known, "the rule has heard of it")
