"""Commands of the how-to pages, run on processes and servers of the test's own.

tests/e2e/unfollowed.py lists the commands that are not run here, with the test that runs them or the reason.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from tests.e2e.followed import Followed
from tests.e2e.pages import ROOT, blocks
from tests.e2e.printed_objects import ALERTS, POLICIES, PROMETHEUS_RULES, SPLITS
from tests.e2e.shop import Shop


async def test_rules_are_written_and_tested(tmp_path: Path) -> None:
    with Followed("docs/how-to/write-and-test-rules.md", tmp_path, part=lambda one: "--against" not in one) as page:
        page.save()
        page.save(into="rules")
        (tmp_path / "outage.jsonl").write_text(blocks(page.text, "jsonl")[0])
        said = await page.run_all()
        assert "no problems" in said
        assert "3 passed, 0 failed" in said
        assert (tmp_path / "report.xml").is_file()


async def test_the_first_rule_is_proven(tmp_path: Path) -> None:
    with Followed("docs/quickstart.md", tmp_path) as page:
        page.save()
        (tmp_path / "outage.jsonl").write_text(blocks(page.text, "jsonl")[0])
        said = await page.run_all()
        assert '"at": 155' in said


async def test_the_library_is_used_and_a_world_is_simulated(tmp_path: Path) -> None:
    with Followed("docs/how-to/use-the-library.md", tmp_path) as page:
        (tmp_path / "rules").symlink_to(ROOT / "rules")
        (tmp_path / "my-rules").mkdir()
        assert "0 failed" in await page.run_all()
    with Followed("docs/how-to/simulate-a-world.md", tmp_path) as page:
        shutil.copy(ROOT / "rules/library/active_passive.yaml", tmp_path / "shop.yaml")
        page.instead = {"--hours 12": "--hours 1"}
        said = await page.run_all()
        assert "Never early" in said
        assert "Rehearsed" in (tmp_path / "broken.jsonl").read_text(), "no promise is broken"


async def test_rules_begin_with_what_there_is(tmp_path: Path) -> None:
    async with Emulator(clock=Clock().now) as emulator:
        Shop(emulator).split("checkout", "checkout-west")
        emulator.cluster("west")
        config = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        (tmp_path / "reactor.yaml").write_text(f"clusters: {{east: {{kubeconfig: {config}, context: east}}}}\n")
        with Followed("docs/how-to/start-from-what-you-have.md", tmp_path, KUBECONFIG=str(config)) as page:
            await page.run("reactor init --config")
            await page.run("reactor init --context")
            assert "TrafficFailover" in (tmp_path / "shop.yaml").read_text()
            page.kubectl(SPLITS)
            await page.run("kubectl get trafficsplits")
            await page.run("kubectl get trafficsplits")
            page.kubectl(POLICIES)
            await page.run("kubectl get pp,cpp")
            (tmp_path / "alerts.yml").write_text(ALERTS)
            await page.run("reactor import prometheus alerts.yml --target")
            page.kubectl(PROMETHEUS_RULES)
            await page.run("kubectl get prometheusrules")
            (tmp_path / "alerts.yaml").unlink()
            said = await page.run("reactor import prometheus alerts.yml --output-file")
            [console] = blocks(page.text, "console")
            assert said.strip() == console.partition("\n")[2].strip()
    for name, words in {"rules.yaml": "TrafficFailover", "workloads.yaml": "WorkloadFailover"}.items():
        assert words in (tmp_path / name).read_text()
