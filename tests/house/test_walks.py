"""The four walks of CONTRIBUTING.md, done: each adds its example to a copy of the three packages, in as many files as
the page says, and the copy does what the example is for.

tests/house/walks has the examples: new files whole, and lines before, after or instead of a line of a file that is
there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
WALKS = {"probe": "A probe", "carrier": "A carrier", "guard": "A guard", "rule_kind": "A rule kind"}
"""Example to heading."""
_PART = re.compile(
    r"^=== (?:new: (?P<new>\S+)|in: (?P<file>\S+)\n=== (?P<where>before|after|instead): (?P<line>.*))\n", re.MULTILINE
)
_PROMISE = re.compile(r"^(\w[\w ]+?) +(\d+) +(\d+)$", re.MULTILINE)

Ran = Callable[..., str]


def changed(walk: str, root: Path) -> dict[str, str]:
    """The text of each file that the walk adds or changes, by its path."""
    text = (ROOT / "tests" / "house" / "walks" / f"{walk}.txt").read_text("utf-8")
    parts = list(_PART.finditer(text))
    ends = [part.start() for part in parts[1:]] + [len(text)]
    out: dict[str, str] = {}
    for part, end in zip(parts, ends, strict=True):
        lines = text[part.end() : end]
        if part["new"]:
            assert not (root / part["new"]).exists()
            out[part["new"]] = lines
            continue
        there, line = out.get(part["file"]) or (root / part["file"]).read_text("utf-8"), f"{part['line']}\n"
        assert there.count(f"\n{line}") == 1, f"{part['file']} has not once the line {line}"
        new = {"before": lines + line, "after": line + lines, "instead": lines}[part["where"]]
        out[part["file"]] = there.replace(f"\n{line}", f"\n{new}")
    return out


def section(walk: str) -> str:
    """What the page says of a walk."""
    found = re.search(rf"^### {WALKS[walk]}: .*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"CONTRIBUTING.md has no walk called {WALKS[walk]}"
    return found[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("bus", "rules", "reactor"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "house").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "house" / "test_kinds.py", tmp_path / "tests" / "house")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def walked(walk: str, copy: Path) -> Ran:
    """Do the walk in the copy, and give what runs Python there."""
    for path, text in changed(walk, copy).items():
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text(text, "utf-8")

    def ran(*arguments: str, status: int = 0) -> str:
        env = {**os.environ, "PYTHONPATH": str(copy)}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=copy, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return ran


def house(ran: Ran, *more: str, status: int = 0) -> str:
    """Run the house test of forgotten parts in the copy."""
    return ran("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/house/test_kinds.py", *more, status=status)


def rule_file(copy: Path, text: str) -> str:
    (copy / "r.yaml").write_text(f"apiVersion: reactor/v1\n{text}", "utf-8")
    return "r.yaml"


@pytest.mark.parametrize("walk", WALKS)
def test_the_page_names_every_file_and_their_number(walk: str) -> None:
    said, paths = section(walk), changed(walk, ROOT)
    count = re.match(r"### [^:]+: (\d+) files", said)
    assert count is not None
    assert int(count[1]) == len(paths)
    assert [path for path in paths if f"`{path}`" not in said] == []
    assert f"tests/house/walks/{walk}.txt" in said


def test_a_probe_is_loaded_and_run(copy: Path) -> None:
    ran = walked("probe", copy)
    rules = rule_file(
        copy, "sources: [{name: dns, kind: DnsProbe, target: custom/dns, host: localhost, everySeconds: 0.1}]"
    )
    program = f"""
import asyncio
from pathlib import Path
from reactor.runtime.clock import Clock
from reactor.sources.catalog import start_all
from reactor.sources.source_context import SourceContext
from rules.loader import load

async def main():
    said = asyncio.get_running_loop().create_future()
    async def tell(fact):
        said.done() or said.set_result(fact)
    world = SourceContext(clock=Clock(), tell=tell, clusters=None, prometheus={{}}, http=None)
    world.scheduler.start()
    tasks = start_all(load([("{rules}", Path("{rules}").read_text())]).sources, world)
    print((await asyncio.wait_for(said, 60)).status, len(tasks))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    world.scheduler.shutdown(wait=False)

asyncio.run(main())
"""
    assert ran("-c", program).strip() == "Healthy 1"


def test_a_carrier_gets_the_actions_of_rules_that_name_it(copy: Path) -> None:
    ran = walked("carrier", copy)
    taint = "{key: gone, effect: NoExecute}"
    rules = rule_file(
        copy, f"rules: [{{name: t, kind: ClusterTaint, match: cluster/*, carrier: Ticket, taints: [{taint}]}}]"
    )
    program = f"""
import asyncio
from datetime import datetime, timezone
from pathlib import Path
from bus.messages import SetTaints
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.runtime.clock import Clock
from rules.loader import load

(rule,) = load([("{rules}", Path("{rules}").read_text())]).rules
action = SetTaints(
    id="t/cluster/a/1", rule=rule.name, object="cluster/a", generation=1, mode="Enforce", because="TargetChanged",
    decided_at=datetime.now(timezone.utc), cluster="a", taints=(), carrier=rule.carrier,
)
world = CarrierContext(clock=Clock(), clusters=None, notifiers={{}}, http=None)
outcome = asyncio.run(carry_out(action, world))
print(outcome.status, outcome.wrote, outcome.detail)
"""
    assert ran("-c", program).strip() == "Done True SetTaints is in the log"


def test_a_guard_holds_with_its_reason(copy: Path) -> None:
    ran = walked("guard", copy)
    rules = rule_file(
        copy,
        "rules: [{name: n, kind: Notification, mode: Enforce, match: service/**,"
        ' guards: {freezeUntil: "1970-01-01T00:01:00Z"}}]',
    )
    out = simulated(ran, copy, rules)
    assert '"held":"Frozen"' in out[0]
    assert '"message":' in out[1]
    assert '"at":60' in out[1]


def test_a_rule_kind_acts(copy: Path) -> None:
    ran = walked("rule_kind", copy)
    rules = rule_file(
        copy,
        "rules: [{name: n, kind: Announcement, mode: Enforce, match: service/**, whenUnhealthy: It is bad.,"
        " whenHealthy: It is good.}]",
    )
    out = simulated(ran, copy, rules)
    assert len(out) == 1
    assert '"message":"It is bad."' in out[0]
    world = ran("-m", "reactor.cli.main", "simulate", "--rules", rules, "--world", "1", "--hours", "12", "-o", "text")
    counted = {name.strip(): (int(tested), int(broken)) for name, tested, broken in _PROMISE.findall(world)}
    assert counted["Never early"][0] > 0, world
    assert not any(broken for _, broken in counted.values()), world


def simulated(ran: Ran, copy: Path, rules: str) -> list[str]:
    """The lines of `reactor simulate` for a target that is bad from second 10 on."""
    looks = ((0, "Healthy"), (10, "Unhealthy"), (100, "Unhealthy"))
    lines = [f'{{"at": {at}, "observe": {{"target": "service/a/b/c", "status": "{word}"}}}}' for at, word in looks]
    (copy / "h.jsonl").write_text("\n".join(lines), "utf-8")
    out = ran("-m", "reactor.cli.main", "simulate", "--rules", rules, "--history", "h.jsonl")
    return [re.sub(r"(?<=[:,]) ", "", line) for line in out.splitlines()]


FORGOTTEN = {
    "probe": ("reactor/sources/probes/dns_probe.py", "no module dns_probe.py"),
    "carrier": ("reactor/actions/ticket/carrier.py", "carrier Ticket: no reactor/actions/ticket/carrier.py"),
    "guard": ("rules/rehearsal/testing/possible.py", "freeze_until"),
    "rule_kind": ("rules/catalog.py", "rules/catalog.py, _FOLDERS: announcement"),
}
"""A file of each walk, and what the house test says where it is left out."""


def test_nothing_is_forgotten_after_all_walks(copy: Path) -> None:
    for walk in WALKS:
        ran = walked(walk, copy)
    house(ran)


def test_what_is_forgotten_is_named(copy: Path) -> None:
    before = {path: (copy / path).read_text("utf-8") for path, _ in FORGOTTEN.values() if (copy / path).exists()}
    for walk in WALKS:
        ran = walked(walk, copy)
    for path, _ in FORGOTTEN.values():
        if path in before:
            (copy / path).write_text(before[path], "utf-8")
        else:
            (copy / path).unlink()
    said = house(ran, status=1)
    assert [words for _, words in FORGOTTEN.values() if words not in said] == []
