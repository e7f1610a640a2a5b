"""docs/quickstart.md, followed from step 3 on a real API server: its files, and each of its commands in order.

Only the recovery is shorter from step 4 on, and the webhook has a port of its own. A Deployment that is scaled to 0 is
a Service without ready endpoints here: no controller runs. Steps 1 and 2, demo and installation, are not run here.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from tests.e2e.pages import blocks, environment, files, section, shell, typed
from tests.e2e.real_cluster import needs_one, real_cluster
from tests.e2e.waiting import until, until_told
from tests.kube.deployed import kubeconfig

pytestmark = needs_one
PAGE = "quickstart.md"
PROVE, LOOK, ACT = "3. Write a rule, and prove it", "4. Let it look at your cluster", "5. Let it act"
AWAY = {"checkout": 0, "checkout-west": 1}


def save(text: str, folder: Path) -> None:
    for name, content in files(text):
        (folder / name).write_text(content)


@asynccontextmanager
async def running(command: str, folder: Path, env: dict[str, str]) -> AsyncIterator[Path]:
    """Run a command in the background, as in a terminal of its own, and give the file with what it prints."""
    log = folder / "run.log"
    with log.open("wb") as printed:
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", f"exec {command}", cwd=folder, env=env, stdout=printed, stderr=printed
        )
    try:
        yield log
        assert process.returncode is None, log.read_text()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)  # Ctrl-C
            await process.wait()
        print(log.read_text()[-3000:])


async def test_a_rule_is_proven_before_there_is_a_cluster(tmp_path: Path) -> None:
    step = section(PAGE, PROVE)
    save(step, tmp_path)
    [history] = blocks(step, "jsonl")
    (tmp_path / "outage.jsonl").write_text(history)
    [commands] = blocks(step, "sh")
    printed = await shell(commands, tmp_path, environment())
    assert '"at": 40' in printed
    assert '"at": 155' in printed
    assert "second 40 " in step
    assert "second 155 " in step


async def test_a_rule_looks_at_a_cluster_and_then_acts(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    (folder / ".kube").mkdir(parents=True)
    look, act = section(PAGE, LOOK), section(PAGE, ACT)
    save(section(PAGE, PROVE), folder)
    save(look, folder)
    rule = folder / "shop.yaml"
    rule.write_text(rule.read_text().replace("recoverySeconds: 60", "recoverySeconds: 4"))
    [start], [console], [told] = blocks(look, "sh"), blocks(look, "console"), blocks(act, "console")
    [status] = typed(console)
    async with real_cluster(tmp_path / "east") as cluster:
        await cluster.shop()
        admin = kubeconfig(cluster.api.server, folder / ".kube/config")
        known = yaml.safe_load(admin.read_text())
        known["contexts"][0]["name"] = known["current-context"] = "east"
        admin.write_text(yaml.safe_dump(known))
        env = environment(
            HOME=str(folder), KUBECONFIG=str(admin), REACTOR_RECEIVER__LISTEN="127.0.0.1:0", COLUMNS="200"
        )

        async def shows(*words: str) -> None:
            async def so() -> bool:
                try:
                    printed = await shell(status, folder, env)
                except AssertionError:
                    return False  # it has only begun
                return all(word in printed.split() for word in words)

            await until_told(so, f"the status has {words}")

        async with running(start, folder, env) as log:
            await shows("Watching")
            assert (await shell(status, folder, env)).split() == console.partition("\n")[2].split()
            async with cluster.watched():
                await cluster.endpoints("checkout", ready=False)
                await shows("Tolerating")
                await until(lambda: "SetWeights (dry run)" in log.read_text(), "it says what it would do")
                await cluster.endpoints("checkout", ready=True)
                await shows("Watching", "DryRun")
                assert cluster.history() == []
                rule.write_text(rule.read_text().replace("mode: DryRun", "mode: Enforce"))
                await shows("Watching", "Enforce")
                await cluster.endpoints("checkout", ready=False)
                await until(cluster.history, "traffic moves")
                assert cluster.history() == [AWAY]
            annotations, events = [await shell(one, folder, env) for one in typed(told)]
            assert '"reactor/decision":"checkout/east/shop/TrafficSplit/checkout/3"' in annotations
            assert (
                "trafficsplit/checkout   checkout 1→0, checkout-west 0→1: PrimaryUnhealthy: checkout: Unhealthy"
                in events
            )
