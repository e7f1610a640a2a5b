"""A failpoint happens once, where and when it was ordered; an order that cannot be parsed is an error."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reactor.runtime.failpoints import ENVIRONMENT, NAMES, Failpoint
from tests.chaos.nursery import ROOT

SAID = re.compile(r'reach\("([a-z.-]+)"\)')


def test_every_name_is_a_place_in_the_code_and_every_place_a_name() -> None:
    places = [name for file in (ROOT / "reactor").rglob("*.py") for name in SAID.findall(file.read_text("utf-8"))]
    assert sorted(places) == sorted(NAMES)


def test_an_order_is_read() -> None:
    assert Failpoint.parse("decider.decided") == Failpoint("decider.decided", "kill", 0, 1)
    assert Failpoint.parse("executor.taken:3=stop") == Failpoint("executor.taken", "stop", 0, 3)
    assert Failpoint.parse("router.taken:2=sleep 0.5") == Failpoint("router.taken", "sleep", 0.5, 2)


@pytest.mark.parametrize(
    "order", ["decider.nowhere", "decider.decided:0", "decider.decided=explode", "decider.decided:"]
)
def test_an_order_that_cannot_be_parsed_is_an_error(order: str) -> None:
    with pytest.raises(ValueError, match=re.escape(order)):
        Failpoint.parse(order)


def test_it_happens_at_the_hit_that_was_named(tmp_path: Path) -> None:
    script = """
from reactor.runtime.failpoints import reach
for n in range(5):
    reach('router.taken')
    print(n, flush=True)
"""
    environment = {**os.environ, ENVIRONMENT: "router.taken:3"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["0", "1"]
    assert done.returncode == -signal.SIGKILL
