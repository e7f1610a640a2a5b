"""One file for those who help: all that they need, and no secret."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.shop import Shop
from tests.ports import free_port

SECRET = "canary-9f3b1c77e2"
PROBE = f"""
- name: probe
  kind: HttpProbe
  url: http://127.0.0.1:1/
  target: custom/probe
  headers: {{X-Api-Key: {SECRET}}}
"""
WHOLE = {"version.json", "doctor.json", "members.json", "status.json", "bus.json", "decisions.jsonl", "readyz.json",
         "metrics.txt", "settings.yaml", "rules/rules.yaml", "logs/reactor.log", "CONTENTS.txt"}  # fmt: skip


async def test_a_bundle_has_everything_but_the_secrets(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    shop.splits(["cart"], "fallback")
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    settings = {
        "receiver": {"listen": f"127.0.0.1:{free_port()}", "bearerTokenFiles": [str(secret)]},
        "health": {"listen": f"127.0.0.1:{free_port()}"},
        "prometheus": {"main": {"url": f"http://ann:{SECRET}@127.0.0.1:1"}},
        "notifiers": {"chat": {"kind": "slack", "url": f"http://127.0.0.1:1/{SECRET}"}},
    }
    async with reactor(document(ALERTS, PROBE, rules=failover(toleration=0)), **settings) as service:
        await service.settled(1)
        shop.endpoints("cart", ready=0)
        service.log.write_text(service.log.read_text() + f"says {SECRET}\n")
        bundle = service.folder / "support.tar.gz"
        words = ("support-bundle", "-o", "json", "--output-file", str(bundle), "--log", str(service.log))
        code, said = await service.answered(*words)
        assert code == 0, said
        files = {one["name"]: one["problem"] for one in json.loads(said[said.index("{") :])["files"]}
        assert {name for name, problem in files.items() if problem} == {"doctor.json"}  # that Prometheus is not there
        assert bundle.stat().st_mode & 0o777 == 0o600
        texts = unpacked(bundle)
        assert texts.keys() == WHOLE
        assert all(texts.values())
        assert not {name for name, text in texts.items() if SECRET in text}
        assert not {name for name, text in texts.items() if token_of(service.folder) in text}
        assert "reactor_bus_up 1.0" in texts["metrics.txt"]
        assert "X-Api-Key: '***'" in texts["rules/rules.yaml"]
        assert '"cart"' in texts["status.json"]
        assert "doctor.json: exit code 1" in texts["CONTENTS.txt"]

        before = bundle.read_bytes()
        code, said = await service.answered(*words)
        assert (code, "exists: name another file" in said) == (1, True), said
        assert bundle.read_bytes() == before


def unpacked(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as archive:
        files = {os.path.relpath(one.name, "reactor-support"): archive.extractfile(one) for one in archive}
        return {name: file.read().decode() for name, file in files.items() if file is not None}


def token_of(folder: Path) -> str:
    """The password of the embedded bus."""
    return (folder / "nats/url").read_text().rpartition("@")[0].rpartition(":")[2]
