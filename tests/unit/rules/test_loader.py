"""Rule files: what they may say, and that every mistake is told with its place, all at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.core.errors import InvalidFiles, Problem
from rules.loader import load_rules, schema
from rules.rulefile.yaml import read_yaml
from tests.unit.rules.builders import failover, notification, rule_file, rule_set

FILES = Path(__file__).parents[2] / "data" / "rules"
GOOD, BAD = sorted(FILES.glob("*.good.yaml")), sorted(FILES.glob("*.bad.yaml"))
A_SCHEMA_SEES = {
    "alias", "cluster_source_keys", "empty", "five_mistakes", "kinds", "list", "not_yaml", "sources", "tag", "zones",
}  # fmt: skip
"""The other mistakes are between keys, or of YAML itself."""


def name(path: Path) -> str:
    return path.name


def problems(*texts: str) -> list[str]:
    with pytest.raises(InvalidFiles) as caught:
        load_rules([(f"{letter}.yaml", text) for letter, text in zip("abc", texts, strict=False)])
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_a_good_file_is_read_without_a_word(path: Path) -> None:
    assert load_rules([(path.name, path.read_text())]).warnings == ()


@pytest.mark.parametrize("path", BAD, ids=name)
def test_every_mistake_of_a_bad_file_is_told_at_its_place(path: Path) -> None:
    with pytest.raises(InvalidFiles) as caught:
        load_rules([(path.name, path.read_text())])
    assert [str(problem) for problem in caught.value.problems] == path.with_suffix(".txt").read_text().splitlines()


def test_a_file_with_five_different_mistakes_has_five_findings() -> None:
    assert len((FILES / "five_mistakes.bad.txt").read_text().splitlines()) == 5


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_the_schema_accepts_every_good_file(path: Path) -> None:
    jsonschema.Draft202012Validator(schema()).validate(read_yaml(path.read_text(), path.name)[0].value)


@pytest.mark.parametrize("path", BAD, ids=name)
def test_the_schema_refuses_what_a_schema_can_see(path: Path) -> None:
    valid = jsonschema.Draft202012Validator(schema()).is_valid(read_yaml(path.read_text(), path.name)[0].value)
    assert valid == (path.name.split(".")[0] not in A_SCHEMA_SEES)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_mistakes_of_all_files_are_told_together() -> None:
    found = problems(rule_file(failover(tolerationSeconds=-1)), "apiVersion: v1", "{")
    assert [line.split(":")[0] for line in found] == ["a.yaml", "b.yaml", "c.yaml"]


def test_a_name_must_be_unique_over_all_files() -> None:
    found = problems(rule_file(failover()), rule_file(failover()))
    assert len(found) == 1
    assert found[0].startswith("b.yaml:1:")
    assert "rule 'web' is given twice; first at a.yaml:1" in found[0]


def test_the_defaults_are_those_of_the_contract() -> None:
    given_ = {key: value for key, value in failover().items() if key != "mode"}
    rule = rule_set(given_).rules[0]
    assert rule.model_dump(mode="json", by_alias=True, exclude={"route"}) == {
        "name": "web", "mode": "DryRun", "signals": None, "tolerationSeconds": 0.0, "recoverySeconds": 0.0,
        "treatUnknownAs": "Hold", "guards": None, "notify": [], "kind": "TrafficFailover", "primary": None,
        "backends": None, "distribution": "Equal", "onAllDown": "Hold", "steps": [],
        "failback": {
            "mode": "Automatic", "signals": None, "trial": {"percent": 5, "seconds": 60.0},
            "backoff": {"factor": 2.0, "maxSeconds": 3600.0, "resetSeconds": 3600.0},
        },
        "onDrift": "Restore", "overflow": None,
    }  # fmt: skip


@pytest.mark.parametrize(("every", "timeout"), [(0.5, 0.5), (1, 1), (2, 2), (10, 2)])
def test_a_default_is_no_mistake_of_a_person_who_writes_a_short_period(every: float, timeout: float) -> None:
    source = {"name": "s", "kind": "TcpProbe", "target": "custom/x", "host": "x", "port": 1, "everySeconds": every}
    assert (
        load_rules([("s.yaml", rule_file(sources=[source]))]).sources[0].model_dump(by_alias=True)["timeoutSeconds"]
        == timeout
    )


def test_the_defaults_of_sources_are_those_of_the_contract() -> None:
    common = {"refreshSeconds": 30, "staleSeconds": 90}
    timing = {"everySeconds": 10, "timeoutSeconds": 2, "failureThreshold": 3, "successThreshold": 1}
    for given_, expected in (
        (
            {"kind": "HttpProbe", "target": "custom/x", "url": "http://x"},
            {**timing, "method": "GET", "expectStatus": "200-399", "followRedirects": False},
        ),
        ({"kind": "TcpProbe", "target": "custom/x", "host": "x", "port": 1}, timing),
        ({"kind": "EndpointsWatch", "cluster": "east"}, {"minReady": 1}),
        (
            {"kind": "PrometheusQuery", "target": "custom/x", "prometheus": "main", "query": "up"},
            {"everySeconds": 15, "unhealthyWhen": "Present"},
        ),
        ({"kind": "AlertmanagerWebhook", "target": "custom/x"}, {"onResolved": "Confirm", "matchers": ""}),
    ):
        text = rule_file(sources=[{"name": "s", **given_}])
        read_ = load_rules([("s.yaml", text)]).sources[0].model_dump(by_alias=True)
        assert {key: read_[key] for key in {**common, **expected}} == common | expected, given_["kind"]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"tolerationSeconds": "10"}, "must be a number, got '10'"),
        ({"tolerationSeconds": True}, "must be a number, got true"),
        ({"tolerationSeconds": None}, "must be a number, got nothing"),
        ({"tolerationSeconds": 40_000_000}, "must be 31622400 or less, got 40000000"),
        ({"mode": "Sometimes"}, "must be 'Enforce', 'DryRun', 'Approve' or 'Off', got 'Sometimes'"),
        ({"notify": "oncall"}, "must be a list, got 'oncall'"),
        ({"signals": []}, "needs at least 1 entries"),
        ({"name": "x" * 129}, "must be at most 128 characters long"),
        ({"backends": []}, "needs at least 1 entries"),
        ({"backends": [{"service": f"s{n}"} for n in range(65)]}, "takes at most 64 entries"),
        ({"backends": [{"service": "a", "weight": 1_000_001}]}, "must be 1000000 or less, got 1000001"),
        ({"backends": [{"service": "a", "weight": 1.5}]}, "must be a whole number, got 1.5"),
        ({"steps": [{"percent": 0, "pauseSeconds": 1}]}, "must be more than 0, got 0"),
        ({"steps": [{"percent": 101, "pauseSeconds": 1}]}, "must be 100 or less, got 101"),
        ({"steps": [{"percent": 10}]}, "required, and not there"),
        ({"onAllDown": "Nothing"}, "must be 'Hold', 'Primary', 'Spread' or 'Zero'"),
        ({"treatUnknownAs": "Healthy"}, "must be 'Hold' or 'Unhealthy'"),
        ({"route": "web"}, "must be a mapping, got 'web'"),
        ({"tolerationsSeconds": 1}, "unknown key; did you mean tolerationSeconds?"),
        ({"zzz": 1}, "unknown key"),
    ],
)
def test_a_wrong_value_is_told_in_words_of_the_file(keys: dict[str, Any], says: str) -> None:
    found = problems(rule_file(failover(**keys)))
    assert len(found) == 1, found
    assert says in found[0]


def test_what_would_surprise_is_warned_of_and_read() -> None:
    loaded = rule_set(
        failover(primary="z", backends=[{"service": "a"}]), notification(match="servce/**"),
    )  # fmt: skip
    said = sorted(warning.message for warning in loaded.warnings)
    assert len(said) == 3
    assert "the rule will hold with UnknownPrimary" in said[0]
    assert "no target starts with 'servce'" in said[1]
    assert "only one backend" in said[2]


def test_an_alert_that_nothing_can_confirm_is_warned_of() -> None:
    alerts = {"name": "pages", "kind": "AlertmanagerWebhook", "target": "service/{cluster}/{namespace}/{service}"}
    ready = {"name": "ready", "kind": "EndpointsWatch", "cluster": "east"}
    assert len(load_rules([("a.yaml", rule_file(sources=[alerts]))]).warnings) == 1
    assert load_rules([("a.yaml", rule_file(sources=[alerts, ready]))]).warnings == ()
    assert load_rules([("a.yaml", rule_file(sources=[{**alerts, "onResolved": "Healthy"}]))]).warnings == ()


def test_what_could_confirm_an_alert_is_what_says_healthy_itself_and_counts_for_the_same_rule() -> None:
    alerts = {"name": "pages", "kind": "AlertmanagerWebhook", "target": "service/{cluster}/{namespace}/{service}"}
    other: dict[str, Any] = {**alerts, "name": "tickets"}
    ready = {"name": "ready", "kind": "EndpointsWatch", "cluster": "east"}

    def warned(*sources: dict[str, Any], signals: list[str]) -> int:
        text = rule_file(failover(signals=signals), sources=[alerts, *sources])
        return sum("nothing could confirm" in one.message for one in load_rules([("a.yaml", text)]).warnings)

    assert warned(other, signals=["pages", "tickets"]) == 2
    assert warned({**other, "onResolved": "Healthy"}, signals=["pages", "tickets"]) == 0
    assert warned(ready, signals=["pages"]) == 1
    assert warned(ready, signals=["pages", "ready"]) == 0


def test_a_signal_that_no_source_has_is_warned_of() -> None:
    ready = {"name": "ready", "kind": "EndpointsWatch", "cluster": "east"}
    text = rule_file(failover(signals=["readiness"]), sources=[ready])
    assert ["readiness" in warning.message for warning in load_rules([("a.yaml", text)]).warnings] == [True]


def test_a_thousand_rules_are_read() -> None:
    rules = [failover(name=f"r{n}", tolerationSeconds=n) for n in range(1000)]
    assert len(load_rules([("many.yaml", rule_file(*rules))]).rules) == 1000


def test_a_rule_knows_its_place() -> None:
    text = (FILES / "full.good.yaml").read_text()
    loaded = load_rules([("full.good.yaml", text)])
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "name: gateway" in line)
    assert loaded.places["gateway"] == f"full.good.yaml:{line}"
    assert loaded.rule("gateway").mode == "Off"


PIECES = st.sampled_from(
    [path.read_text() for path in (*GOOD, *BAD)]
    + [
        "apiVersion: reactor/v1\nrules: ",
        "[",
        "{",
        "- ",
        "? ",
        ": ",
        "&a ",
        "*a",
        "!!str ",
        "|\n",
        "\t",
        "\x00",
        "\ud800",
    ]
)


@given(st.lists(PIECES | st.text(max_size=20), max_size=4).map("".join), st.integers(0, 3000), st.text(max_size=3))
@settings(max_examples=150)
def test_whatever_a_file_holds_it_is_read_or_its_mistakes_are_told(text: str, cut: int, more: str) -> None:
    text = text[:cut] + more + text[cut:]
    found: tuple[Problem, ...] | None = None
    try:
        load_rules([("fuzz.yaml", text)])
    except InvalidFiles as error:
        found = error.problems
    assert found is None or (found and all(problem.line >= 1 and problem.column >= 1 for problem in found))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "http://x:99999/"}, "no URL that can be asked: Port out of range 0-65535"),
        ({"url": "http://x:0/"}, "nothing listens on port 0"),
        ({"url": "http://[x/"}, "no URL that can be asked"),
        ({"url": "http://me:secret@x/"}, "a user and password have no place in a rule file"),
        ({"url": "http://x/", "headers": {"A": "b\r\nC: d"}}, "a header is one line of printable characters"),
        ({"url": "http://x/", "headers": {"A\n": "b"}}, "a header is one line of printable characters"),
    ],
)
def test_what_no_probe_could_ask_is_refused(fields: dict[str, Any], said: str) -> None:
    source = {"name": "a", "kind": "HttpProbe", "target": "service/a/b/c", **fields}
    [problem, *_] = problems(json.dumps({"apiVersion": "reactor/v1", "sources": [source], "rules": [notification()]}))
    assert said in problem
    assert "secret" not in problem


@pytest.mark.parametrize("char", ["\x9b", "\x7f", "\u202e", "\u2066"])
@pytest.mark.parametrize(
    ("key", "place"), [("target", "sources[0].target"), ("signal", "sources[0].signal"), ("match", "rules[0].match")]
)
def test_names_and_targets_hold_no_invisible_characters(char: str, key: str, place: str) -> None:
    words = {"target": "service/east/shop/a", "signal": "s", "match": "service/**"}
    words[key] += char
    texts = {name: json.dumps(word) for name, word in words.items()}
    probe = f"kind: TcpProbe, name: p, host: h, port: 80, target: {texts['target']}, signal: {texts['signal']}"
    rule = f"kind: Notification, name: n, match: {texts['match']}"

    [problem] = problems(f"apiVersion: reactor/v1\nsources: [{{{probe}}}]\nrules: [{{{rule}}}]\n")

    assert place in problem
    assert f"holds U+{ord(char):04X}" in problem
