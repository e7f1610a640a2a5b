"""The command line, as people and pipelines use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from click.testing import CliRunner, Result

from reactor.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "rules"
HEAVY = ("nats", "kubernetes", "aiohttp", "grpc", "prometheus_api_client", "apscheduler")
SHOP = """
apiVersion: reactor/v1
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends: [{service: checkout}, {service: checkout-west, target: service/west/shop/checkout}]
    tolerationSeconds: 10
    recoverySeconds: 60
"""
SHOP_TEST = """
apiVersion: reactor/v1
ruleFiles: [shop.yaml]
tests:
  - name: a dead primary fails over
    intervalSeconds: 5
    inputs:
      - {target: service/east/shop/checkout, values: "Healthy Unhealthy x6"}
      - {target: service/west/shop/checkout, values: "Healthy x7"}
    expect:
      - {at: 15, action: SetWeights, rule: checkout, weights: {checkout: 0, checkout-west: 1}}
"""
OUTAGE = "\n".join(
    json.dumps({"at": at, "observe": {"target": f"service/{where}/shop/checkout", "status": status}})
    for at, where, status in (
        (0, "east", "Healthy"),
        (0, "west", "Healthy"),
        (5, "east", "Unhealthy"),
        (20, "west", "Healthy"),
    )
)


def reactor(*words: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], input=stdin)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a rule file, its test, and a history."""
    (tmp_path / "shop.yaml").write_text(SHOP)
    (tmp_path / "shop_test.yaml").write_text(SHOP_TEST)
    (tmp_path / "outage.jsonl").write_text(OUTAGE)
    return tmp_path


def in_a_process(code: str, *words: str | Path, seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


MAIN = "from reactor.cli.main import main; main()"


# --- the group ---------------------------------------------------------------------------------------------------


def test_help_lists_every_command_and_imports_none() -> None:
    shown = reactor("--help")
    assert shown.exit_code == 0
    assert all(f"\n  {name} " in shown.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    shown = reactor(name, "--help")
    assert shown.exit_code == 0
    assert len(shown.output.splitlines()) > 5


HELP_OF_ALL = """
import sys, click
from reactor.cli.main import cli

def show(command, words):
    context = click.Context(command, info_name=words[-1])
    command.get_help(context)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        show(command.get_command(context, name), [*words, name])

show(cli, ["reactor"])
print("\\n".join(sys.modules))
"""
RUN = """
import sys
from reactor.cli.main import cli
try:
    cli(prog_name="reactor")
except SystemExit as end:
    assert not end.code, end.code
print("\\n".join(sys.modules), file=sys.stderr)
"""
ROLES = """
import sys
import reactor.process.app, reactor.process.role_set, reactor.route.router, reactor.fleet.observer
import reactor.execute.executor, reactor.actions.catalog, reactor.sources.catalog, reactor.clients.clusters
print("\\n".join(sys.modules))
"""
WITH_A_RULE = f"""{ROLES}
from rules.engine.routing import Routing
from rules.loader import load_rules
rule = (
    "{{name: a, kind: TrafficFailover, route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: a}}, "
    "backends: [{{service: a}}, {{service: b}}], guards: {{maxConcurrent: 1, peers: ['service/east/*/*']}}}}"
)
Routing.of(load_rules([("shop.yaml", f"apiVersion: reactor/v1\\nrules: [{{rule}}]")]))
print("\\n".join(sys.modules))
"""
COLLECTOR = """
import gc, sys
from reactor.cli.main import main
sys.argv = ["reactor", "version"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(gc.isenabled(), gc.get_freeze_count() > 10_000, file=sys.stderr)
"""
SETTINGS = ("pydantic_settings", "reactor.settings.model")


def test_a_reactor_without_a_prometheus_imports_no_client_of_one() -> None:
    """It is 7 MB of every process."""
    loaded = {*in_a_process(ROLES).stdout.split()}
    assert "reactor.route.router" in loaded
    assert loaded.isdisjoint({"requests", "prometheus_api_client"})


def test_a_reactor_imports_no_library_that_its_rules_and_its_settings_do_not_ask_for() -> None:
    """Expressions, PromQL and nkeys are 5 MB of every process."""
    loaded = {*in_a_process(WITH_A_RULE).stdout.split()}
    assert "rules.rulefile.targets" in loaded
    assert loaded.isdisjoint({"re2", "promql_parser", "nkeys", "nacl"})


def test_a_command_collects_garbage_and_does_not_look_for_it_among_what_it_imported() -> None:
    assert in_a_process(COLLECTOR).stderr.split() == ["True", "True"]


def test_the_help_of_all_commands_together_imports_no_client_of_a_server() -> None:
    """All imports of any help, alone or after others, are seen in one process that shows them all."""
    loaded = {*in_a_process(HELP_OF_ALL).stdout.split()}
    assert "reactor.cli.shared.zone_isolation" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("words", "none_of"),
    [
        (["--help"], ("pydantic", "yaml", "bus")), (["--version"], ("pydantic", "yaml", "bus")),
        (["version"], ("pydantic", "yaml", "bus")), (["schema", "--help"], ("pydantic", "yaml", "bus")),
        (["check", "{shop}/shop.yaml"], SETTINGS), (["test", "{shop}"], SETTINGS), (["schema"], SETTINGS),
        (["simulate", "--rules", "{shop}/shop.yaml", "--history", "{shop}/outage.jsonl"], SETTINGS),
        (["schema", "settings"], ()),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_needs_no_server_imports_no_client_of_one(words: list[str], none_of: tuple[str, ...], shop: Path) -> None:
    done = in_a_process(RUN, *(word.format(shop=shop) for word in words))
    loaded = {*done.stderr.split()}
    assert "reactor.cli.main" in loaded, done.stderr
    assert loaded.isdisjoint({*HEAVY, *none_of})


def test_a_misspelled_command_is_a_usage_error_with_a_hint() -> None:
    shown = reactor("chek")
    assert shown.exit_code == 2
    assert "Did you mean check?" in shown.output


def test_version_names_the_reactor_python_and_the_server() -> None:
    shown = json.loads(reactor("version", "-o", "json").output)
    assert {"reactor", "python", "nats-server"} <= shown.keys()
    assert "reactor " in reactor("version").output


# --- check -------------------------------------------------------------------------------------------------------


def test_the_version_is_an_option_too() -> None:
    short = reactor("--version")
    assert (short.exit_code, short.stdout.split()[0]) == (0, "reactor")
    assert short.stdout.splitlines()[0] == reactor("version").stdout.splitlines()[0]


def test_check_is_quiet_about_a_good_file() -> None:
    shown = reactor("check", DATA / "full.good.yaml")
    assert shown.exit_code == 0
    assert shown.output == "1 file, 4 rules: no problems\n"


def test_check_prints_every_finding_with_its_place() -> None:
    shown = reactor("check", DATA / "five_mistakes.bad.yaml")
    expected = (
        (DATA / "five_mistakes.bad.txt")
        .read_text()
        .replace("five_mistakes.bad.yaml", str(DATA / "five_mistakes.bad.yaml"))
    )
    assert shown.exit_code == 1
    assert shown.stdout == expected
    assert shown.stderr == "1 file: 5 errors\n"


def test_check_says_warnings_and_passes(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("apiVersion: reactor/v1\nrules: [{name: a, kind: Notification, match: servce/**}]")
    shown = reactor("check", file)
    assert shown.exit_code == 0
    assert f"{file}:2:46: warning: rules[0].match: no target starts with 'servce'\n" == shown.stdout
    assert "1 warning" in shown.stderr


def test_check_takes_folders_globs_and_tests(shop: Path) -> None:
    assert reactor("check", shop).output == "1 file, 1 rule: no problems\n"
    assert reactor("check", shop / "*.yaml").output == "2 files, 1 rule: no problems\n"
    assert reactor("check", shop, shop / "shop.yaml").output == "1 file, 1 rule: no problems\n"


def test_check_reads_stdin() -> None:
    assert reactor("check", "-", stdin=SHOP).exit_code == 0
    shown = reactor("check", "-", stdin="rules: 5")
    assert shown.exit_code == 1
    assert shown.stdout.startswith("<stdin>:1:1: apiVersion: must be reactor/v1")


def test_check_finds_names_that_are_in_two_files(shop: Path) -> None:
    (shop / "copy.yaml").write_text(SHOP)
    assert "is given twice" in reactor("check", shop).stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [("gone.yaml", "no such file"), ("empty", "the folder has no rule files"), ("nothing*.yaml", "no such file")],
)
def test_a_file_that_is_not_there_is_named(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for command in ("check", "simulate"):
        more = ["--history", "-"] if command == "simulate" else []
        shown = reactor(command, tmp_path / name, *more, stdin="")
        assert shown.exit_code == 1
        assert f"{tmp_path / name}:1:1: {says}" in shown.output


def test_a_file_that_is_not_utf_8_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"apiVersion: reactor/v1\n# caf\xe9\n")
    shown = reactor("check", file)
    assert shown.exit_code == 1
    assert shown.stdout == f"{file}:2:6: not UTF-8: byte 0xe9; save it as UTF-8\n"


def test_check_writes_json_and_annotations_for_machines() -> None:
    found = json.loads(reactor("check", "-o", "json", DATA / "five_mistakes.bad.yaml").output)
    assert [(one["line"], one["severity"]) for one in found] == [(line, "error") for line in (5, 7, 9, 10, 11)]
    assert json.loads(reactor("check", "-o", "json", DATA / "full.good.yaml").output) == []
    annotated = reactor("check", "-o", "github", DATA / "five_mistakes.bad.yaml").output.splitlines()
    assert annotated[1].endswith(",line=7,col=22::rules[0].recoverySeconds: must be 0 or more, got -5")
    assert all(line.startswith("::error file=") for line in annotated)


def test_check_prints_hints_and_passes_unless_it_is_strict(shop: Path) -> None:
    file = shop / "shop.yaml"
    file.write_text(SHOP.replace("    recoverySeconds: 60\n", ""))
    shown = reactor("check", file)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{file}:4:5: hint: rules[0]: no recoverySeconds: it goes back with the first ")
    assert shown.stdout.endswith(" [no-recovery]\n")
    assert shown.stderr == "1 file, 1 rule: 1 hint\n"
    assert reactor("check", "--strict", file).exit_code == 1
    assert reactor("check", "--strict", DATA / "full.good.yaml").exit_code == 0


def test_machines_are_told_which_hint_it_is(shop: Path) -> None:
    (shop / "shop.yaml").write_text(SHOP.replace("    recoverySeconds: 60\n", ""))
    [found] = json.loads(reactor("check", "-o", "json", shop / "shop.yaml").output)
    assert (found["severity"], found["hint"], found["path"], found["line"]) == ("hint", "no-recovery", "rules[0]", 4)
    annotated = reactor("check", "-o", "github", shop / "shop.yaml").output
    assert annotated.startswith(f"::notice file={shop}/shop.yaml,line=4,col=5,title=no-recovery::rules[0]: no recovery")


def test_hints_wait_until_nothing_is_wrong(shop: Path) -> None:
    (shop / "bad.yaml").write_text("apiVersion: reactor/v1\nsources: [{name: a, kind: EndpointWatch}]")
    (shop / "shop.yaml").write_text(SHOP.replace("    recoverySeconds: 60\n", ""))
    assert reactor("check", shop).stderr == "2 files: 2 errors\n"


def test_check_without_a_file_is_a_usage_error() -> None:
    assert reactor("check").exit_code == 2
    assert reactor("check", "-o", "xml", DATA).exit_code == 2


# --- test --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["shop_test.yaml", "shop.yaml", ""])
def test_test_finds_the_tests_of_a_file_a_rule_file_and_a_folder(what: str, shop: Path) -> None:
    shown = reactor("test", shop / what)
    assert shown.exit_code == 0
    assert shown.output == f"PASS {shop}/shop_test.yaml: a dead primary fails over\n1 passed, 0 failed\n"


def test_a_failing_test_prints_expected_actual_and_why(shop: Path) -> None:
    (shop / "shop_test.yaml").write_text(SHOP_TEST.replace("at: 15", "at: 20"))
    shown = reactor("test", shop)
    assert shown.exit_code == 1
    for part in (
        f"FAIL {shop}/shop_test.yaml:5: a dead primary fails over",
        "- {at: 20, action: SetWeights, rule: checkout, weights: {checkout: 0, checkout-west: 1}}   <- did not happen",
        "- {at: 15, rule: checkout, action: SetWeights,", "because: PrimaryUnhealthy}   <- not expected",
        "service/east/shop/checkout is Unhealthy since second 5", "0 passed, 1 failed",
    ):  # fmt: skip
        assert part in shown.output


def test_results_can_be_read_by_machines(shop: Path) -> None:
    report = json.loads(reactor("test", "-o", "json", shop).output)
    [result] = report["results"]
    assert result["passed"] is True
    assert result["actual"][0]["because"] == "PrimaryUnhealthy"
    assert any("Unhealthy" in why for why in result["actual"][0]["why"])


def test_a_test_file_that_is_wrong_fails_and_the_others_still_run(shop: Path) -> None:
    (shop / "wrong_test.yaml").write_text("apiVersion: reactor/v1\nruleFiles: [gone.yaml]\n")
    shown = reactor("test", shop)
    assert shown.exit_code == 1
    assert "1 passed, 0 failed" in shown.stdout
    assert f"{shop / 'gone.yaml'} cannot be read: No such file or directory" in shown.stderr


def test_one_bad_expectation_fails_its_test_alone(shop: Path) -> None:
    file = shop / "shop_test.yaml"
    bad = SHOP_TEST.partition("tests:\n")[2].replace("a dead primary", "another").replace("SetWeights", "SetWeight")
    file.write_text(SHOP_TEST + bad)
    shown = reactor("test", file)
    assert shown.exit_code == 1
    assert "PASS" in shown.stdout
    assert "1 passed, 0 failed" in shown.stdout
    assert "tests[1].expect[0].action: must be 'SetWeights'" in shown.stderr
    assert "tests[1]" in reactor("check", shop / "shop.yaml", file).output, "check still names it"


def test_nothing_to_test_is_an_error(shop: Path) -> None:
    (shop / "shop_test.yaml").unlink()
    assert "there is no shop_test.yaml" in reactor("test", shop / "shop.yaml").output
    assert "no rule tests" in reactor("test", shop).output
    assert reactor("test", shop).exit_code == 1
    assert reactor("test", shop / "gone_test.yaml").exit_code == 1
    assert reactor("test").exit_code == 2


def test_a_failing_test_of_any_kind_prints_what_was_asked_for(tmp_path: Path) -> None:
    """Lists, absences and outcomes are shown as they would be written into the file."""
    (tmp_path / "t.yaml").write_text("""
apiVersion: reactor/v1
rules: [{name: t, kind: ClusterTaint, match: cluster/east, taints: [{key: brownout, effect: NoExecute}]}]
""")
    (tmp_path / "t_test.yaml").write_text("""
apiVersion: reactor/v1
ruleFiles: [t.yaml]
tests:
  - name: a bad cluster is tainted
    inputs: [{target: cluster/east, values: "Healthy Unhealthy x3"}]
    outcomes: [{at: 70, action: {action: SetTaints}, status: Failed, reason: Forbidden}]
    expect:
      - {at: 60, action: SetTaints, taints: [{key: other, effect: NoExecute}]}
      - {absent: {action: SetTaints, until: 100}}
""")
    shown = reactor("test", tmp_path)
    assert shown.exit_code == 1
    for part in (
        "taints: [{key: other, effect: NoExecute}]}   <- did not happen",
        "- {absent: {action: SetTaints, until: 100}}   <- is there",
        "taints: [{key: brownout, value: , effect: NoExecute}], because: TargetChanged,", "}   <- not expected",
        "outcome: - {at: 70, action: {action: SetTaints}, status: Failed, reason: Forbidden}   <- no rule that",
    ):  # fmt: skip
        assert part in shown.output


def test_coverage_says_which_reasons_no_test_has_seen(shop: Path) -> None:
    shown = reactor("test", "--coverage", shop)
    assert shown.exit_code == 0
    unseen = "NoHealthySecondary, Paused, RouteNotFound, RouteUnusable, TargetUnknown, UnknownPrimary"
    assert f"""coverage: 1 of 1 rule, 1 of 1 kind, 1 of 13 reasons
  checkout (TrafficFailover, {shop}/shop.yaml:4): 1 of 13
    acted: PrimaryUnhealthy
    never acted: Drift, PrimaryChanged, PrimaryHealthy, SecondariesChanged
    never held: ActionFailed, BackingOff, {unseen}
1 passed, 0 failed
""" in shown.output  # fmt: skip
    [covered] = json.loads(reactor("test", "--coverage", "-o", "json", shop).output)["coverage"]
    assert covered["because"] == {"PrimaryUnhealthy": 1}
    assert covered["never"]["because"] == ["Drift", "PrimaryChanged", "PrimaryHealthy", "SecondariesChanged"]
    assert "coverage" not in json.loads(reactor("test", "-o", "json", shop).output)


def test_junit_tells_ci_of_every_test_with_expected_actual_and_why(shop: Path, tmp_path: Path) -> None:
    again = SHOP_TEST.partition("tests:\n")[2].replace("a dead primary", "another one").replace("at: 15", "at: 20")
    (shop / "shop_test.yaml").write_text(SHOP_TEST + again)
    (shop / "wrong_test.yaml").write_text("apiVersion: reactor/v1\nruleFiles: [gone.yaml]\n")
    report = tmp_path / "report.xml"
    assert reactor("test", "--junit", report, shop).exit_code == 1
    root = ET.parse(report).getroot()  # noqa: S314 - our own
    junit_shape(root)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "1", "2")
    good, bad = root.findall(f"testsuite[@name='{shop}/shop_test.yaml']/testcase")
    assert (good.get("name"), good.get("line"), list(good)) == ("a dead primary fails over", "5", [])
    told = bad.findtext("failure") or ""
    assert all(part in told for part in ("<- did not happen", "<- not expected", "is Unhealthy since second 5"))
    assert any("gone.yaml cannot be read" in (error.text or "") for error in root.iter("error"))


def test_a_report_that_cannot_be_written_is_told(shop: Path) -> None:
    shown = reactor("test", "--junit", shop / "gone" / "report.xml", shop)
    assert shown.exit_code == 1
    assert "1 passed, 0 failed" in shown.stdout
    assert f"Could not open file '{shop}/gone/report.xml': No such file or directory" in shown.stderr


def test_junit_says_what_xml_cannot(shop: Path, tmp_path: Path) -> None:
    name = '"a \\a \\uFFFE <primary> & ü 😀"'
    (shop / "shop_test.yaml").write_text(SHOP_TEST.replace("a dead primary fails over", name), encoding="utf-8")
    report = tmp_path / "report.xml"
    assert reactor("test", "--junit", report, shop).exit_code == 0
    [case] = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - our own
    assert case.get("name") == "a \N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER} <primary> & ü 😀"


JUNIT: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testcase"}),
    "testcase": ({"name", "classname", "file", "line", "time"}, {"failure", "error"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
}
"""Attributes and children, of those that Jenkins' junit-10.xsd has; `file` and `line` are what GitLab adds."""


def junit_shape(element: ET.Element) -> None:
    attributes, children = JUNIT[element.tag]
    assert element.attrib.keys() == attributes
    assert {child.tag for child in element} <= children
    if "tests" in attributes:
        cases = list(element.iter("testcase"))
        assert int(element.attrib["tests"]) == len(cases)
        assert int(element.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
        assert int(element.attrib["errors"]) == sum(case.find("error") is not None for case in cases)
    if "time" in attributes:
        assert 0 <= float(element.attrib["time"]) < 60
    for child in element:
        junit_shape(child)


# --- simulate ----------------------------------------------------------------------------------------------------


def simulated(shop: Path, *words: str, **more: Any) -> list[dict[str, Any]]:
    shown = reactor("simulate", "--rules", shop / "shop.yaml", "--history", shop / "outage.jsonl", *words, **more)
    assert shown.exit_code == 0, shown.output
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_simulate_prints_a_line_for_what_comes_out(shop: Path) -> None:
    assert [(line["at"], line["weights"]) for line in simulated(shop)] == [(15, {"checkout": 0, "checkout-west": 1})]


def test_simulate_ends_with_the_last_event_or_where_it_is_told(shop: Path) -> None:
    assert simulated(shop, "--until", "14") == []
    (shop / "outage.jsonl").write_text("\n".join(OUTAGE.splitlines()[:3]))
    assert simulated(shop) == []
    assert len(simulated(shop, "--until", "100")) == 1


def test_rule_files_may_be_given_either_way_and_the_history_by_stdin(shop: Path) -> None:
    (shop / "more.yaml").write_text(
        "apiVersion: reactor/v1\nrules: [{name: t, kind: Notification, match: 'service/**'}]"
    )
    words = ("simulate", "--rules", shop / "shop.yaml", shop / "more.yaml", "--history", "-")
    assert len(reactor(*words, stdin=OUTAGE).stdout.splitlines()) == 2
    again = ("simulate", "--rules", shop / "shop.yaml", "--rules", shop / "more.yaml", "--history", "-")
    assert len(reactor(*again, stdin=OUTAGE).stdout.splitlines()) == 2


def test_simulate_needs_rules_and_a_history(shop: Path) -> None:
    assert reactor("simulate", "--history", shop / "outage.jsonl").exit_code == 2
    assert reactor("simulate", "--rules", shop / "shop.yaml").exit_code == 2
    assert reactor("simulate", "--rules", "-", "--history", "-", stdin="").exit_code == 2
    assert reactor("simulate", "--rules", shop, "--history", "-", "--until", "-5", stdin="").exit_code == 2


def test_a_history_that_is_wrong_is_told_on_stderr_with_its_line(shop: Path) -> None:
    (shop / "outage.jsonl").write_text(OUTAGE + "\n{\n")
    shown = reactor("simulate", "--rules", shop / "shop.yaml", "--history", shop / "outage.jsonl")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert f"{shop / 'outage.jsonl'}:5: not JSON" in shown.stderr


def test_rules_that_are_wrong_are_told_on_stderr(shop: Path) -> None:
    shown = reactor("simulate", "--rules", DATA / "five_mistakes.bad.yaml", "--history", shop / "outage.jsonl")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert len(shown.stderr.splitlines()) == 5


def test_the_same_input_gives_the_same_bytes_in_any_process(shop: Path) -> None:
    many = SHOP + "".join(
        f"  - {{name: n{n}, kind: Notification, match: 'service/**', mode: Enforce, notify: [a]}}\n" for n in range(9)
    )
    (shop / "shop.yaml").write_text(many)
    words = ("simulate", "--rules", shop / "shop.yaml", "--history", shop / "outage.jsonl")
    outputs = {in_a_process(MAIN, *words, seed=seed).stdout for seed in ("1", "2", "77")}
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 10


def test_ten_thousand_events_take_seconds(shop: Path) -> None:
    events = (
        {"at": n * 2.5, "observe": {"target": f"service/{('east', 'west')[n % 2]}/shop/checkout", "status": status}}
        for n, status in enumerate(("Healthy", "Healthy", "Healthy", "Unhealthy", "Unknown") * 2000)
    )
    (shop / "outage.jsonl").write_text("\n".join(map(json.dumps, events)))
    started = time.process_time()
    simulated(shop)
    assert time.process_time() - started < 5


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_trace(shop: Path) -> None:
    flaps = [
        {"at": n * 20, "observe": {"target": "service/east/shop/checkout", "status": ("Healthy", "Unhealthy")[n % 2]}}
        for n in range(4000)
    ]
    west = {"at": 0, "observe": {"target": "service/west/shop/checkout", "status": "Healthy"}}
    (shop / "outage.jsonl").write_text("\n".join(map(json.dumps, [west, *flaps])))
    words = [sys.executable, "-c", MAIN, "simulate", "--rules", str(shop / "shop.yaml"), "--history"]
    with subprocess.Popen(
        [*words, str(shop / "outage.jsonl")], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"at": ')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=300) in (0, 1)


# --- schema ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["rules", "test", "settings"])
def test_schemas_are_schemas(what: str) -> None:
    printed = json.loads(reactor("schema", what).output)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["properties"]


def test_the_rules_are_the_default_schema() -> None:
    assert reactor("schema").output == reactor("schema", "rules").output
    assert reactor("schema", "everything").exit_code == 2


ALERTED = """
apiVersion: reactor/v1
sources:
  - {name: am, kind: AlertmanagerWebhook, matchers: 'severity="page"', target: 'service/east/shop/{service}',
     onResolved: Healthy}
rules:
  - name: checkout
    kind: TrafficFailover
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends: [{service: checkout}, {service: checkout-west}]
  - {name: west, kind: Notification, match: "service/west/**"}
"""


def test_what_an_alert_reaches_is_asked_of_rule_files_alone(tmp_path: Path) -> None:
    file = tmp_path / "alerted.yaml"
    file.write_text(ALERTED)
    words = ("explain", "--rules", file, "--match", 'severity="page",service="checkout"')
    told = reactor(*words)
    assert (told.exit_code, told.output) == (0, """\
source am: yes: says service/east/shop/checkout is Unhealthy, as signal am
  rule checkout: yes: after 0 s, mode DryRun
  rule west: no: service/east/shop/checkout is none of its targets
""")  # fmt: skip
    [heard] = json.loads(reactor(*words, "-o", "json").output)
    assert heard["source"]["reaches"]
    assert [(rule["name"], rule["reaches"]) for rule in heard["rules"]] == [("checkout", True), ("west", False)]
    nobody = reactor(*words[:-1], 'severity="info",service="checkout"')
    assert nobody.exit_code == 1
    assert 'no: asks for severity="page", and the alert has severity="info"' in nobody.output


@pytest.mark.parametrize("labels", ["service", 'service=~"a|b"', 'service="a'])
def test_labels_that_are_none_are_a_mistake_of_the_command_line(labels: str, tmp_path: Path) -> None:
    file = tmp_path / "alerted.yaml"
    file.write_text(ALERTED)
    told = reactor("explain", "--rules", file, "--match", labels)
    assert told.exit_code == 2
    assert "Error: --match: " in told.output


@pytest.mark.parametrize(("typed", "completed"), [("reactor doc", "doctor"), ("reactor traffic fail", "failback")])
def test_a_shell_completes_commands(typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_REACTOR_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", "from reactor.cli.main import cli; cli(prog_name='reactor')"],
        env={**os.environ, **words}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"plain,{completed}" in done.stdout.splitlines()
