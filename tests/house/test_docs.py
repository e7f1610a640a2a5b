"""Pages are true of the code: links, examples, metrics, reasons, commands and words.

An example that is not run goes stale; so every rule, test, history and settings example in any page is loaded here.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest
import yaml

from bus.topology import BUCKETS, STREAMS
from reactor.cli.main import COMMANDS, cli
from reactor.settings import model as settings
from reactor.views.group_view import entry
from rules import loader
from rules.core.group import Group, NoState
from rules.core.reasons import Because, Held
from rules.lint import hints as lint
from rules.rehearsal import history
from rules.rehearsal import simulation as play
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.simulator import simulate
from rules.summary import GroupStatus

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
RULE_FILE = "apiVersion: reactor/v1"
"""The first line of a rule file or a rule test, after comments."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\S*)[^\n]*\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\((?P<to>[^)\s]+)\)")
_METRIC = re.compile(r'(Counter|Gauge|Histogram|RuleSeries)\(\s*"(reactor_\w+)"')


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    """`yaml`, `sh`, `jsonl`…"""
    text: str

    @property
    def name(self) -> str:
        """The file that it shows, from its first line `# shop.yaml`; else a name of its own."""
        first = re.match(r"# (\S+\.ya?ml)\n", self.text)
        return first[1] if first else f"line-{self.line}.yaml"

    @property
    def is_rule_file(self) -> bool:
        body = [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]
        return self.kind == "yaml" and bool(body) and body[0] == RULE_FILE

    @property
    def is_test(self) -> bool:
        return self.is_rule_file and bool(re.search(r"^tests:", self.text, re.MULTILINE))

    @property
    def is_settings(self) -> bool:
        return self.kind == "yaml" and Path(self.name).name == "reactor.yaml"


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def prose(page: Path) -> str:
    """The page without its examples: an example's brackets are no links."""
    return _FENCE.sub("", page.read_text("utf-8"))


@cache
def of_page(page: Path) -> tuple[Example, ...]:
    text = page.read_text("utf-8")
    return tuple(
        Example(page, text.count("\n", 0, found.start()) + 1, found["kind"], found["text"])
        for found in _FENCE.finditer(text)
    )


EXAMPLES = [example for page in PAGES for example in of_page(page)]
RULES = [one for one in EXAMPLES if one.is_rule_file and not one.is_test]
TESTS = [one for one in EXAMPLES if one.is_test]
SETTINGS = [one for one in EXAMPLES if one.is_settings]
HISTORIES = [one for one in EXAMPLES if one.kind == "jsonl"]


def ids(example: Example) -> str:
    return f"{shown(example.page)}:{example.line}"


def neighbour(page: Path, name: str) -> str:
    """Give the rule file of this name that the page shows."""
    for one in of_page(page):
        if one.is_rule_file and one.name == Path(name).name:
            return one.text
    raise FileNotFoundError(2, f"{shown(page)} shows no example that begins with `# {name}`")


# --- links ---------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[str]:
    yield from (to for to in (found["to"] for found in _LINK.finditer(prose(page))) if "://" not in to)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for to in links(page):
        path, _, anchor = to.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{shown(page)}: {to} leads nowhere"
        assert not target.is_dir() or any(target.iterdir()), f"{shown(page)}: {to} is empty, git does not keep it"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{shown(page)}: {to}: no such heading"


def test_the_way_from_an_observation_to_a_patch_is_at_most_25_files() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| \[[\w/.]+\.py\]\(\.\./[\w/.]+\.py\) \|", text, re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, len(rows) + 1))
    assert 20 <= len(rows) <= 25


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.is_file():
            continue
        reached.add(page)
        waiting += [(page.parent / to.partition("#")[0]).resolve() for to in links(page) if ".md" in to]
    assert not sorted(shown(page) for page in DOCS.rglob("*.md") if page not in reached)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_no_page_names_a_place_on_the_machine_it_was_written_on(page: Path) -> None:
    found = re.findall(r"(?:/work|/root|/home/\w+|/tmp)/\S*", page.read_text("utf-8"))
    assert not found


# --- examples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", RULES, ids=ids)
def test_every_rule_example_loads_without_a_warning(example: Example) -> None:
    assert loader.load_rules([(example.name, example.text)]).warnings == ()


@pytest.mark.parametrize("example", RULES, ids=ids)
def test_no_rule_example_gets_a_hint(example: Example) -> None:
    assert loader.examine([(example.name, example.text)]).hints() == []


def test_every_hint_is_told_in_the_how_to() -> None:
    page = (DOCS / "how-to" / "write-and-test-rules.md").read_text("utf-8")
    assert [hint for hint in lint.HINTS if f"| `{hint}` |" not in page] == []


@pytest.mark.parametrize("example", TESTS, ids=ids)
def test_every_rule_test_example_passes(example: Example) -> None:
    suite = tester.load_suite(example.text, example.name, lambda name: neighbour(example.page, name))
    results = list(tester.run(suite))
    assert results
    assert suite.warnings == ()
    assert [result.name for result in results if not result.passed] == []


@pytest.mark.parametrize("example", HISTORIES, ids=ids)
def test_every_history_example_can_be_played_by_the_rules_of_its_page(example: Example) -> None:
    events = history.load_history(example.text.splitlines(), ids(example)).events
    rules = [(one.name, one.text) for one in of_page(example.page) if one.is_rule_file and not one.is_test]
    assert list(simulate(loader.load_rules(rules).rules, events, until=3600))


@pytest.mark.parametrize("example", SETTINGS, ids=ids)
def test_every_settings_example_can_be_used(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("REACTOR_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "reactor.yaml"
    path.write_text(example.text, "utf-8")
    assert settings.load(path)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.kind == "yaml"], ids=ids)
def test_every_yaml_example_is_yaml(example: Example) -> None:
    assert yaml.safe_load(example.text)


def test_there_are_examples_of_every_kind() -> None:
    assert min(len(RULES), len(TESTS), len(SETTINGS), len(HISTORIES)) > 0


# --- commands ------------------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, list[str]]]:
    """Give each `reactor …` of an example, and of a sentence: its place, and its words."""
    for example in EXAMPLES:
        if example.kind not in ("sh", "console"):
            continue
        for line in example.text.splitlines():
            for part in re.split(r"&&|\|", line.removeprefix("$ ").partition(" #")[0]):
                words = part.split()
                if words[:1] == ["reactor"] and len(words) > 1:
                    yield ids(example), words[1:]
    for page in [page for page in PAGES if page.name != "CHANGELOG.md"]:  # which names what was
        for line in re.findall(r"`reactor ([a-z][^`]*)`", prose(page)):
            yield f"{shown(page)}: `reactor {line}`", re.split(r"&&|\|", line)[0].split()


def test_every_command_that_is_shown_exists_with_its_options() -> None:
    context = click.Context(cli)
    for where, (name, *words) in commands():
        assert name in COMMANDS, f"{where}: there is no reactor {name}"
        command = cli.get_command(context, name)
        assert command is not None
        while isinstance(command, click.Group) and words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        wrong = isinstance(command, click.Group) and words and re.fullmatch(r"[a-z]+", words[0])
        assert not wrong, f"{where}: reactor {name} has no command {words[0]}"
        known = {option for param in command.params for option in param.opts}
        for word in words:
            option = word.partition("=")[0]
            is_option = re.match(r"-[-a-zA-Z]", option)  # -30d is a value: a month ago
            assert not is_option or option in known, f"{where}: reactor {name} has no option {option}"
        if words and ("runbooks.md" in where or "troubleshoot.md" in where):  # read at night, and copied
            needed = {param.opts[0] for param in command.params if isinstance(param, click.Option) and param.required}
            assert needed <= set(words), f"{where}: without {needed}"


def test_every_make_target_that_is_shown_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for example in EXAMPLES:
        for target in re.findall(r"^make ([a-z]+)", example.text, re.MULTILINE):
            assert target in targets, f"{ids(example)}: make {target}"


def test_ci_calls_the_test_command_of_the_readme() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Test it")[2]
    first = _FENCE.search(section)
    assert first
    command = first["text"].strip()
    called = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert called[-2:] == [command, "make prove"], "pytest's summary is the last line of CI"


def test_every_exit_code_table_has_every_command() -> None:
    section = (DOCS / "operations.md").read_text("utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    below = {
        f"{name} {part}" for name, command in commands.items() if isinstance(command, click.Group)
        for part in command.commands
    }  # fmt: skip
    assert sorted(told) == sorted(below | {name for name, one in commands.items() if not isinstance(one, click.Group)})


# --- metrics, reasons, streams, words --------------------------------------------------------------------------------


@cache
def metrics() -> frozenset[str]:
    """The metrics of the code, as Prometheus shows them."""
    found = set()
    for file in (ROOT / "reactor").rglob("*.py"):
        for kind, name in _METRIC.findall(file.read_text("utf-8")):
            found.add(f"{name}_total" if kind == "Counter" else name)
    return frozenset(found)


def test_every_metric_is_documented_and_no_other() -> None:
    section = (DOCS / "operations.md").read_text("utf-8").partition("## Metrics")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(reactor_\w+)`", section, re.MULTILINE)) == metrics()


def log_keys() -> Iterator[str]:
    """The keys that log lines carry beside the text: `extra={"rule": …}`, in place or by a name."""
    for file in (ROOT / "reactor").rglob("*.py"):
        if "demo" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            given: ast.expr | None = None
            if isinstance(node, ast.keyword) and node.arg == "extra":
                given = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                given = node.value if node.targets[0].id in ("extra", "about") else None
            if isinstance(given, ast.Dict):
                yield from (str(key.value) for key in given.keys if isinstance(key, ast.Constant))


def test_every_log_key_is_documented() -> None:
    section = (DOCS / "operations.md").read_text("utf-8").partition("## Logs")[2].partition("\n## ")[0]
    assert set(log_keys()) - set(re.findall(r"`(\w+)`", section)) == set()


def test_no_page_names_a_metric_or_bucket_that_is_not_there() -> None:
    known = metrics() | {bucket.name for bucket in BUCKETS} | {f"KV_{bucket.name}" for bucket in BUCKETS}
    for page in PAGES:
        for name in re.findall(r"\breactor_[a-z]\w*", page.read_text("utf-8")):
            assert name in known, f"{shown(page)}: {name}"


def test_no_page_names_a_stream_that_is_not_there() -> None:
    # Environment variables look the same, and are told apart by what comes after the first underscore.
    known = {stream.name for stream in STREAMS}
    for page in PAGES:
        for name in re.findall(
            r"\bREACTOR_(?:INBOX|FACTS|ACTIONS|DECISIONS|GROUPS|LEASES|OUTCOMES)\b", page.read_text()
        ):
            assert name in known, f"{shown(page)}: {name}"


@pytest.mark.parametrize("reason", [*Held, *Because])
def test_for_every_reason_it_is_said_what_to_do(reason: Held | Because) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|(.+)\|$", (DOCS / "how-to" / "read-the-status.md").read_text("utf-8"), re.MULTILINE
    )
    told = dict(rows)
    assert len(told.get(reason.value, "")) > 20


def test_every_state_of_the_status_is_explained() -> None:
    page = (DOCS / "how-to" / "read-the-status.md").read_text("utf-8")
    for state in GroupStatus:
        assert f"| `{state}` |" in page


def test_every_key_of_the_status_is_explained() -> None:
    page = (DOCS / "how-to" / "read-the-status.md").read_text("utf-8")
    table = page[page.index("## For scripts") : page.index("## Why it holds")]
    for key in entry(Group("rule", "object", NoState()), {}, play.at(0)):
        assert f"`{key}`" in table


GLOSSARY = """
action, backend, because, bus, carrier, command, decision, drift, DryRun, Enforce, epoch, executor, fact, failback,
failover, fence, generation, group, hold, intent, inventory, member, mode, object, observation, outbox, outcome, owner,
partition, primary, probe, reason, role, route, rule, scope, secondary, settled, signal, source, step, target, tier,
weight, window, decider, observer, receiver, router, Unknown, toleration, recovery, eviction, placement, taint,
isolation, guard, grant, limiter, acquire request, acquire reply, concurrency key, cluster inventory, quorum, drill,
practice, zone fence, health, zone, workload, copy, purge, grace period, pause, approval
"""


def test_the_glossary_has_the_words() -> None:
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| \*\*(.+?)\*\*", glossary, re.MULTILINE)
    states = re.findall(r"^\| `(\w+)` \|", glossary, re.MULTILINE)
    missing = set(re.split(r",\s*", GLOSSARY.strip())) - {*rows, *states}
    assert not missing
    for table in glossary.split("\n## "):
        words = [row.lower() for row in re.findall(r"^\| \*\*(.+?)\*\*", table, re.MULTILINE)]
        assert words == sorted(words), "in the order of the alphabet"


LIBRARY = sorted(path for path in (ROOT / "rules" / "library").glob("*.yaml") if not path.stem.endswith("_test"))


@pytest.mark.parametrize("path", LIBRARY, ids=shown)
def test_every_library_file_has_a_test_and_a_page_that_says_how_to_use_it(path: Path) -> None:
    assert path.with_name(f"{path.stem}_test.yaml").is_file()
    about = [page for page in (DOCS / "how-to").glob("*.md") if f"rules/library/{path.name}" in prose(page)]
    pages = [page for page in about if page.name != "use-the-library.md"]
    assert pages, f"no page of docs/how-to is about rules/library/{path.name}"
    listed = (DOCS / "how-to" / "use-the-library.md").read_text("utf-8")
    assert any(f"]({page.name}" in line for page in pages for line in listed.splitlines() if path.name in line)


def test_every_decision_says_context_decision_why_and_consequences_in_forty_lines() -> None:
    records = sorted((DOCS / "decisions").glob("0*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        text = record.read_text("utf-8")
        assert text.startswith(f"# {record.name[:4]} ")
        assert len(text.splitlines()) <= 40
        for part in ("Context", "Decision", "Why", "Consequences"):
            assert f"**{part}.**" in text, f"{shown(record)}: {part}"
        assert f"]({record.name})" in (DOCS / "decisions" / "README.md").read_text("utf-8")


def test_every_page_is_known_to_git_or_new() -> None:
    """A page that .gitignore swallows would be missing in a fresh checkout."""
    ignored = subprocess.run(
        ["git", "check-ignore", *map(shown, PAGES)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ignored.stdout == ""
