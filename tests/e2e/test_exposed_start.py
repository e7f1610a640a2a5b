"""A process whose page would be open to other machines ends before it listens, with the reason and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("web", "reason"), [
    ({"listen": "0.0.0.0:0"}, "open to other machines: set users"),
    ({"listen": "0.0.0.0:0", "users": [{"name": "ann", "tokenFile": "ann"}]}, "set url, or allowedHosts"),
])  # fmt: skip
def test_reactor_run_ends_where_its_page_would_be_exposed(tmp_path: Path, web: dict[str, object], reason: str) -> None:
    (tmp_path / "ann").write_text("token-of-ann-0123456789")
    (tmp_path / "rules.yaml").write_text("apiVersion: reactor/v1\nrules: []\n")
    config = tmp_path / "reactor.yaml"
    config.write_text(json.dumps({"ruleFiles": ["rules.yaml"], "bus": {"store": "nats"}, "web": web}))
    command = [str(Path(sys.executable).with_name("reactor")), "run", "--config", str(config), "--roles", "all,web"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stderr
    assert reason in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "nats").exists(), "it has started nothing"
