"""The five walks of CONTRIBUTING.md, done: each adds its example to a copy of the repository, in as many files as the
page says, and the copy does what the example is for. What is forgotten is named by a test in tests/house.

tests/house/walks has the examples: new files whole, and lines before, after or instead of a line of a file that is
there; `\\n` there goes on to the next line. Each walk copies the repository and runs its scripts: the probe's is done
in `make test`, all others in `make prove`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
WALKS = {
    "probe": "A probe", "carrier": "A carrier", "action": "An action", "guard": "A guard", "rule_kind": "A rule kind"
}  # fmt: skip
"""Example to heading."""
_SCRIPT = re.compile(r"`(scripts/gen-[a-z-]+\.py)`")
JUDGES = (
    "tests/house/test_glossary.py", "tests/house/test_kinds.py", "tests/house/test_names.py",
    "tests/house/test_reference_docs.py", "tests/house/test_events_docs.py", "tests/house/test_benchmarks.py",
    "tests/house/test_golden_files.py", "tests/house/test_servers_of_kinds.py",
)  # fmt: skip
"""Tests in tests/house that name what is forgotten."""
OTHERS = (
    "test_reference_docs.py::test_each_file_that_examples_are_from_can_be_used[taints_test.yaml]",
    "test_golden_files.py::test_a_simulation_prints_byte_for_byte_what_it_printed",
)
"""Tests of these files that are not about what is forgotten: a walk has ClusterTaint do more than before."""
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
        line = line.replace(r"\n", "\n")
        assert there.count(f"\n{line}") == 1, f"{part['file']} has not once the line {line}"
        new = {"before": lines + line, "after": line + lines, "instead": lines}[part["where"]]
        out[part["file"]] = there.replace(f"\n{line}", f"\n{new}")
    return out


def section(walk: str) -> str:
    """Section of the page about a walk."""
    found = re.search(rf"^### {WALKS[walk]}: .*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"CONTRIBUTING.md has no walk called {WALKS[walk]}"
    return found[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("bus", "rules", "reactor", "docs", "scripts", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in ("pyproject.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def walked(walk: str, copy: Path, *, without: Sequence[str] = ()) -> Ran:
    """Do the walk in the copy but for these files, and give what runs Python there."""
    for path, text in changed(walk, copy).items():
        if path not in without:
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


def scripts(walk: str) -> list[str]:
    """The scripts that the page says to run."""
    return list(dict.fromkeys(_SCRIPT.findall(section(walk))))


def run_scripts(ran: Ran, names: Iterable[str]) -> None:
    """Run scripts one after the other in one process: most of each is the import of what they share."""
    ran(
        "-c", f"import runpy, sys\nsys.argv[1:] = []\nfor name in {[*names]}: runpy.run_path(name, run_name='__main__')"
    )


def contents(copy: Path) -> dict[str, bytes]:
    """All that scripts may write."""
    files = (path for folder in ("docs", "tests/golden") for path in (copy / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(copy)): path.read_bytes() for path in files}


def written(walk: str, copy: Path, ran: Ran) -> set[str]:
    """Run the scripts of the page, and give the files that they have written."""
    before = contents(copy)
    run_scripts(ran, scripts(walk))
    return {path for path, body in contents(copy).items() if before.get(path) != body}


def house(ran: Ran, *judges: str, status: int = 0) -> str:
    """Run the house tests of forgotten parts in the copy, but for those of OTHERS."""
    others = [f"--deselect=tests/house/{one}" for one in OTHERS]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    return ran(*words, *others, *(judges or JUDGES), status=status)


def rule_file(copy: Path, text: str) -> str:
    (copy / "r.yaml").write_text(f"apiVersion: reactor/v1\n{text}", "utf-8")
    return "r.yaml"


@pytest.mark.parametrize("walk", WALKS)
def test_the_page_names_every_file_and_their_number(walk: str) -> None:
    said, paths = section(walk), changed(walk, ROOT)
    count = re.match(r"### [^:]+: (\d+) files by hand, (\d+) by scripts?\n", said)
    assert count is not None
    assert int(count[1]) == len(paths)
    assert [path for path in paths if f"`{path}`" not in said] == []
    assert f"tests/house/walks/{walk}.txt" in said


@pytest.mark.long
@pytest.mark.parametrize("walk", WALKS)
def test_the_page_names_every_file_that_scripts_write(walk: str, copy: Path) -> None:
    ran, said = walked(walk, copy), section(walk)
    files = written(walk, copy, ran)
    count = re.match(r"### [^:]+: (\d+) files by hand, (\d+) by scripts?\n", said)
    assert count is not None
    assert int(count[2]) == len(files), files
    assert [path for path in files if f"`{path}`" not in said] == []


def test_an_action_takes_three_places_of_the_code_besides_its_own_file() -> None:
    paths = {path for path in changed("action", ROOT) if not path.startswith("docs/")}
    assert len(paths - {"reactor/actions/carriers/carry_open_ticket.py"}) <= 3


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
from rules.loader import load_rules

async def main():
    said = asyncio.get_running_loop().create_future()
    async def tell(fact):
        said.done() or said.set_result(fact)
    world = SourceContext(clock=Clock(), tell=tell, clusters=None, prometheus={{}}, http=None)
    world.scheduler.start()
    tasks = start_all(load_rules([("{rules}", Path("{rules}").read_text())]).sources, world)
    print((await asyncio.wait_for(said, 60)).status, len(tasks))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    world.scheduler.shutdown(wait=False)

asyncio.run(main())
"""
    assert ran("-c", program).strip() == "Healthy 1"


@pytest.mark.long
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
from rules.loader import load_rules

(rule,) = load_rules([("{rules}", Path("{rules}").read_text())]).rules
action = SetTaints(
    id="t/cluster/a/1", rule=rule.name, object="cluster/a", generation=1, mode="Enforce", because="TargetChanged",
    decided_at=datetime.now(timezone.utc), cluster="a", taints=(), carrier=rule.carrier,
)
world = CarrierContext(clock=Clock(), clusters=None, notifiers={{}}, http=None)
outcome = asyncio.run(carry_out(action, world))
print(outcome.status, outcome.wrote, outcome.detail)
"""
    assert ran("-c", program).strip() == "Done True SetTaints is in the log"


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_what_a_rule_kind_tells_keeps_its_slot_while_it_is_in_flight(copy: Path) -> None:
    """A guard knows by what the kind says, and not by its name, that telling people is all that it does."""
    ran = walked("rule_kind", copy)
    rules = rule_file(
        copy,
        "rules: [{name: n, kind: Announcement, mode: Enforce, match: service/**, whenUnhealthy: It is bad.,"
        " whenHealthy: It is good., guards: {maxConcurrent: 1}}]",
    )
    targets = ("service/a/b/c", "service/a/b/d", "service/a/b/e")
    out = simulated(ran, copy, rules, *targets, options=("--outcomes", "none"))
    assert len([line for line in out if '"message":' in line]) == 1, out
    assert len([line for line in out if '"held":"MaxConcurrent"' in line]) == 2, out


@pytest.mark.long
def test_a_rule_kind_that_lives_of_observations_is_backtested(copy: Path) -> None:
    """As a Notification is: nothing is said to be missing, the page offers it, and how fast it was is told."""
    ran = walked("rule_kind", copy)
    rules = rule_file(
        copy,
        "sources: [{name: q, kind: PrometheusQuery, prometheus: main, query: down, target: 'service/a/b/{c}'}]\n"
        "rules: [{name: n, kind: Announcement, mode: Enforce, match: service/**, whenUnhealthy: It is bad.,"
        " whenHealthy: It is good., tolerationSeconds: 5}]",
    )
    program = f"""
from pathlib import Path
from bus.messages import Health, Observation
from reactor.web.backtest_folder import BacktestFolder
from reactor.workbench.backtest.history_builder import unplayable
from rules.loader import load_rules
from rules.rehearsal.backtest.backtester import backtest
from rules.rehearsal.simulation import at

rules = load_rules([("{rules}", Path("{rules}").read_text())])
said = [
    (second, Observation(target="service/a/b/c", status=status, signal="q", observed_at=at(second)))
    for second, status in ((0, Health.HEALTHY), (10, Health.UNHEALTHY), (100, Health.HEALTHY))
]
acts = backtest(rules, said, first=0, until=1000).stories["n"].acts
print([*unplayable(rules)])
print(BacktestFolder(None, ["--step", "1m"]).shown("n", [], rules)["backtestCommand"][:16])
print([(act.at, act.move.value, act.reaction_seconds, act.target) for act in acts])
"""
    assert ran("-c", program).splitlines() == [
        "[]", "reactor backtest", "[(15.0, 'Away', 5.0, 'service/a/b/c'), (100.0, 'Home', None, None)]",
    ]  # fmt: skip


def simulated(ran: Ran, copy: Path, rules: str, *targets: str, options: Sequence[str] = ()) -> list[str]:
    """The lines of `reactor simulate` for targets that are bad from second 10 on."""
    looks = ((0, "Healthy"), (10, "Unhealthy"), (100, "Unhealthy"))
    lines = [
        f'{{"at": {at}, "observe": {{"target": "{target}", "status": "{word}"}}}}'
        for at, word in looks
        for target in targets or ("service/a/b/c",)
    ]
    (copy / "h.jsonl").write_text("\n".join(lines), "utf-8")
    out = ran("-m", "reactor.cli.main", "simulate", "--rules", rules, "--history", "h.jsonl", *options)
    return [re.sub(r"(?<=[:,]) ", "", line) for line in out.splitlines()]


@pytest.mark.long
def test_an_action_is_asked_for_and_carried_out(copy: Path) -> None:
    ran = walked("action", copy)
    rules = rule_file(
        copy,
        "rules: [{name: t, kind: ClusterTaint, mode: Enforce, match: cluster/*,"
        " taints: [{key: gone, effect: NoExecute}]}]",
    )
    out = simulated(ran, copy, rules, "cluster/a")
    assert '"action":"OpenTicket"' in out[1]
    assert '"message":' in out[1]
    program = """
import asyncio
from datetime import datetime, timezone
from bus.messages import OpenTicket
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.runtime.clock import Clock

action = OpenTicket(
    id="t/cluster/a/1", rule="t", object="cluster/a", generation=1, mode="Enforce", because="TargetChanged",
    decided_at=datetime.now(timezone.utc), cluster="a", title="it is bad",
)
outcome = asyncio.run(carry_out(action, CarrierContext(clock=Clock(), clusters=None, notifiers={}, http=None)))
print(outcome.status, outcome.wrote, outcome.detail)
"""
    assert ran("-c", program).strip() == "Done True in the log"
    world = ran("-m", "reactor.cli.main", "simulate", "--rules", rules, "--world", "1", "--hours", "12", "-o", "text")
    assert not any(int(broken) for _, _, broken in _PROMISE.findall(world)), world


FORGOTTEN = {
    "reactor/sources/probes/dns_probe.py": "no module dns_probe.py",
    "reactor/actions/carriers/carry_ticket.py": "carry_ticket.py",
    "reactor/actions/carriers/carry_open_ticket.py": "carry_open_ticket.py",
    "rules/kinds/cluster_taint/kind.py": "OpenTicket: no rule kind asks for it",
    "rules/rehearsal/rule_tests/possible.py": "freeze_until",
    "docs/how-to/read-the-status.md": "docs/how-to/read-the-status.md: Frozen",
    "docs/concepts/guards.md": "docs/concepts/guards.md: freezeUntil",
    "benchmarks/rules_many.py": "benchmarks/rules_many.py, KINDS: Announcement",
    "docs/examples/keys/Announcement.yaml": "docs/examples/keys: no Announcement",
    "docs/examples/keys/sources.yaml": "docs/examples/keys: no DnsProbe",
    "docs/glossary.md": "docs/glossary.md: DnsProbe, Ticket, Announcement",
    "docs/reference/names.md": "scripts/gen-names.py",
    "docs/reference/rule-file.md": "scripts/gen-rule-reference.py",
    "docs/events.md": "scripts/gen-events-docs.py",
    "tests/golden/messages/OpenTicket.json": "tests/golden/messages/OpenTicket.json",
    "tests/golden/groups/Announcement.json": "tests/golden/groups/Announcement.json",
}
"""Files of the walks, and what a house test says where one is left out. Those that are not here are named by Python
itself, which cannot import what is not there, and by mypy."""
UNLISTED = "rules/catalog.py"
"""Left out alone: a kind that no catalog has is none, so nothing else of it is missed."""


@pytest.mark.long
def test_nothing_is_forgotten_after_all_walks(copy: Path) -> None:
    for walk in WALKS:
        ran = walked(walk, copy)
    run_scripts(ran, dict.fromkeys(script for walk in WALKS for script in scripts(walk)))
    ran("-m", "ruff", "check", "--no-cache")
    ran("-m", "ruff", "format", "--check", "--no-cache")
    house(ran)


@pytest.mark.long
def test_what_is_forgotten_is_named(copy: Path) -> None:
    for walk in WALKS:
        ran = walked(walk, copy, without=[*FORGOTTEN])
    said = house(ran, status=1)
    assert [words for words in FORGOTTEN.values() if words not in said] == [], said


@pytest.mark.long
def test_a_kind_that_is_in_no_catalog_is_named(copy: Path) -> None:
    ran = walked("rule_kind", copy, without=[UNLISTED])
    assert "rules/catalog.py, _FOLDERS: announcement" in house(ran, "tests/house/test_kinds.py", status=1)


@pytest.mark.long
def test_a_source_that_is_not_in_the_union_is_named(copy: Path) -> None:
    ran = walked("probe", copy)
    file = copy / "rules" / "rulefile" / "sources.py"
    file.write_text(file.read_text("utf-8").replace("    | DnsProbe\n", ""), "utf-8")
    said = house(ran, "tests/house/test_kinds.py", status=1)
    assert "rules/rulefile/sources.py, LoadedSource: | DnsProbe" in said
