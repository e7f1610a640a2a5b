"""Rule tests: what passes, what fails, and what is told of a test file that is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

import jsonschema
import pytest

from bus.messages import Message
from rules.core.errors import InvalidFiles
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.rule_tests.given_zones import COMMANDS, Commanded
from rules.rehearsal.rule_tests.tester import RuleTestResult
from rules.rulefile.yaml import read_yaml
from tests.unit.rules.builders import backends, failover, notification, rule_file

CHECKOUT, WEST = "service/east/shop/a", "service/east/shop/b"
RULES = {
    "rules/shop.yaml": rule_file(failover(tolerationSeconds=10, backends=backends("a", "b"))),
    "rules/dry.yaml": rule_file(failover(mode="DryRun", tolerationSeconds=10, backends=backends("a", "b"))),
    "rules/off.yaml": rule_file(failover(mode="Off", backends=backends("a", "b"))),
    "rules/told.yaml": rule_file(failover(notify=["oncall"], backends=backends("a", "b"))),
    "rules/tell.yaml": rule_file(notification(message="{target} is {status}")),
    "rules/overflow.yaml": rule_file(failover(overflow={}, backends=backends("a", "b"))),
    "rules/open.yaml": rule_file(failover()),
    "rules/bad.yaml": rule_file(failover(tolerationSeconds=-1)),
}
MOVED = {"at": 15, "action": "SetWeights", "rule": "web", "weights": {"a": 0, "b": 1}}
NOT_SAID = {"observed_at", "user", "request"}
"""Of a command: `at` says when, the bus who, and what is approved is what is asked for then."""
FAILS = [
    {"target": CHECKOUT, "values": "Healthy Unhealthy x6"}, {"target": WEST, "values": "Healthy x7"},
]  # fmt: skip


def read_file(name: str) -> str:
    if name not in RULES:
        raise FileNotFoundError(2, "No such file or directory", name)
    return RULES[name]


def suite(*tests: Mapping[str, Any], rules: str = "shop.yaml", **keys: Any) -> str:
    return json.dumps({"apiVersion": "reactor/v1", "ruleFiles": [rules], "tests": list(tests)} | keys)


def a_test(expect: list[Any], inputs: list[Any] | None = None, **keys: Any) -> dict[str, Any]:
    return {"name": "t", "intervalSeconds": 5, "inputs": FAILS if inputs is None else inputs, "expect": expect} | keys


def result(expect: list[Any], inputs: list[Any] | None = None, rules: str = "shop.yaml", **keys: Any) -> RuleTestResult:
    [one] = tester.run(
        tester.load_suite(suite(a_test(expect, inputs, **keys), rules=rules), "rules/shop_test.yaml", read_file)
    )
    return one


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidFiles) as caught:
        tester.load_suite(text, "rules/shop_test.yaml", read_file)
    return [str(problem) for problem in caught.value.problems]


def test_a_test_knows_nothing_of_the_tests_before_it() -> None:
    pause = {"at": 0, "pause": {"rule": "*", "by": "ana", "reason": "maintenance"}}
    tests = [a_test([], commands=[pause], name="paused"), a_test([MOVED], name="moved"), a_test([MOVED], name="again")]
    results = [*tester.run(tester.load_suite(suite(*tests), "rules/shop_test.yaml", read_file))]
    alone = result([MOVED])
    assert alone.passed
    assert [one.said for one in results[1:]] == [alone.said, alone.said]


def test_names_that_no_message_may_have_are_told_with_their_place() -> None:
    """Found by the fuzzer: it was a traceback."""
    [one] = problems(suite(a_test([], [{"target": CHECKOUT, "values": "Healthy", "signal": "a\nb"}])))
    assert ".inputs[0].signal: holds U+000A" in one


def test_the_tests_of_the_contract_pass() -> None:
    dip = [
        {"target": CHECKOUT, "values": "Healthy Unhealthy Healthy x10"}, {"target": WEST, "values": "Healthy x12"},
    ]  # fmt: skip
    assert result([], dip).passed
    assert result([MOVED]).passed


@pytest.mark.parametrize(
    "wrong",
    [{"at": 16}, {"weights": {"a": 0}}, {"weights": {"a": 1, "b": 0}}, {"because": "PrimaryHealthy"},
     {"object": "east/shop/TrafficSplit/other"}, {"mode": "DryRun"}, {"detail": "x"}, {"action": "Notify"}],
)  # fmt: skip
def test_an_action_that_is_not_as_expected_fails(wrong: dict[str, Any]) -> None:
    one = result([MOVED | wrong])
    assert not one.passed
    assert len(one.missing) == len(one.unexpected) == 1


@pytest.mark.parametrize(
    "keys",
    [{}, {"at": 15}, {"because": "PrimaryUnhealthy"}, {"object": "east/shop/TrafficSplit/web"}, {"mode": "Enforce"},
     {"id": "web/east/shop/TrafficSplit/web/1"}],
)  # fmt: skip
def test_an_action_is_compared_by_the_keys_that_are_given(keys: dict[str, Any]) -> None:
    assert result([{"action": "SetWeights"} | keys]).passed


def test_an_action_that_is_not_expected_fails() -> None:
    one = result([])
    assert [said.at for said in one.unexpected] == [15]
    assert one.missing == ()


def test_an_action_that_does_not_come_fails() -> None:
    one = result([MOVED, MOVED | {"at": 25}])
    assert [missing.at for missing in one.missing] == [25]


def test_actions_come_in_order() -> None:
    inputs = [{"target": CHECKOUT, "values": "Unhealthy x5 Healthy x3"}, {"target": WEST, "values": "Healthy x8"}]
    away, home = (
        {"action": "SetWeights", "weights": {"a": 0, "b": 1}},
        {"action": "SetWeights", "weights": {"a": 1, "b": 0}},
    )
    assert result([away, home], inputs).passed
    assert not result([home, away], inputs).passed


def test_holds_may_be_expected_and_need_not_be() -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy Unhealthy x6"}, {"target": WEST, "values": "Unhealthy x7"}]
    hold = {"held": "NoHealthySecondary", "at": 15}
    assert result([], inputs).passed
    assert result([hold], inputs).passed
    assert not result([hold | {"at": 16}], inputs).passed
    assert not result([{"held": "Paused"}], inputs).passed


def test_a_rule_in_dry_run_is_tested_as_it_would_act() -> None:
    assert result([MOVED], rules="dry.yaml").passed
    assert result([MOVED | {"mode": "DryRun"}], rules="dry.yaml").passed


def test_a_rule_that_is_off_does_nothing() -> None:
    assert result([], rules="off.yaml").passed


def test_a_notification_is_an_action() -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy Unhealthy"}]
    told = {"at": 5, "action": "Notify", "rule": "oncall", "message": f"{CHECKOUT} is Unhealthy"}
    assert result([told], inputs, rules="tell.yaml").passed
    assert not result([], inputs, rules="tell.yaml").passed


def test_words_about_an_action_may_be_expected_and_need_not_be() -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy Unhealthy"}, {"target": WEST, "values": "Healthy"}]
    moved = {"at": 5, "action": "SetWeights"}
    assert result([moved], inputs, rules="told.yaml").passed
    assert result(
        [moved, {"at": 5, "action": "Notify", "because": "PrimaryUnhealthy"}], inputs, rules="told.yaml"
    ).passed


def test_a_test_goes_on_until_its_last_expected_action() -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy Unhealthy"}, {"target": WEST, "values": "Healthy"}]
    assert result([MOVED], inputs).passed
    assert result([], inputs).passed


def test_a_route_may_be_given_as_the_cluster_has_it() -> None:
    given = {
        "route": {
            "cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "web",
            "annotations": {"failover.linkerd.io/primary-service": "b"},
            "backends": [{"service": "a", "weight": 1}, {"service": "b", "weight": 0}],
        }
    }  # fmt: skip
    inputs = [{"target": CHECKOUT, "values": "Healthy"}, {"target": WEST, "values": "Healthy"}]
    moved = {"at": 0, "action": "SetWeights", "weights": {"a": 0, "b": 1}}
    assert result([moved], inputs, rules="open.yaml", inventory=[given]).passed
    gone = {"at": 5, "route": given["route"] | {"exists": False}}
    assert result(
        [moved, {"at": 5, "held": "RouteNotFound"}], inputs, rules="open.yaml", inventory=[given, gone]
    ).passed


def test_silence_and_signals_can_be_told() -> None:
    inputs = [
        {"target": CHECKOUT, "values": "Healthy Unhealthy _ x9", "staleSeconds": 8, "signal": "probe"},
        {"target": WEST, "values": "Healthy"},
    ]  # fmt: skip
    assert result([{"at": 13, "held": "TargetUnknown"}], inputs).passed


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ("Healthy", 1),
        ("Healthy x3", 3),
        ("Healthy x1", 1),
        ("Healthy Unhealthy x2 _ x2 Unknown", 6),
        (" Healthy\tx2 ", 2),
    ],
)
def test_xn_repeats_the_word_before_it_to_n_times_in_all(values: str, count: int) -> None:
    assert len(tester.samples(values)) == count


@pytest.mark.parametrize(
    ("values", "says"),
    [("healthy", "did you mean Healthy?"), ("x3", "repeats the word before it"), ("Healthy x3 x3", "repeats the word"),
     ("Healthy x0", "from 1 to 100,000"),
     ("Healthy x100001", "from 1 to 100,000"), ("Healthy x" + "9" * 5000, "from 1"),
     ("Healthy*3", "did you mean Healthy?"), ("up", "words are _, Healthy, Unhealthy, Unknown and xN"), ("", "empty")],
)  # fmt: skip
def test_a_value_that_is_none_is_told(values: str, says: str) -> None:
    found = problems(suite(a_test([], [{"target": CHECKOUT, "values": values}])))
    assert len(found) == 1
    assert says in found[0]
    assert "tests[0].inputs[0].values" in found[0]


def test_how_much_of_a_target_is_healthy_can_be_told() -> None:
    inputs = [
        {"target": CHECKOUT, "values": "Healthy x4", "healthyPercent": "100 50 x2 100", "signal": "readiness"},
        {"target": WEST, "values": "Healthy x4"},
    ]  # fmt: skip
    moved = [
        {"at": 5, "action": "SetWeights", "weights": {"a": 70, "b": 30}},
        {"at": 15, "action": "SetWeights", "weights": {"a": 100, "b": 0}, "because": "PrimaryHealthy"},
    ]
    assert result(moved, inputs, rules="overflow.yaml").passed


@pytest.mark.parametrize(
    ("percent", "says"),
    [("100", "healthyPercent has 1 and values has 3"), ("half x3", "'half' is no percent"),
     ("101 x3", "numbers from 0 to 100"), ("-1 x3", "no percent"), ("x3", "as in `50 x3`"), ("nan x3", "no percent"),
     ("5 x100001", "from 1 to 100,000")],
)  # fmt: skip
def test_a_percent_that_is_none_is_told(percent: str, says: str) -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy x3", "healthyPercent": percent}]
    found = problems(suite(a_test([], inputs)))
    assert len(found) == 1
    assert says in found[0]
    assert "tests[0].inputs[0]" in found[0]


def test_every_mistake_of_a_test_file_is_told_at_once() -> None:
    wrong = a_test(
        [{"at": 5}, {"action": "SetWeight"}, {"action": "SetWeights", "rule": "wbe"}, {"held": "Because"}],
        [{"target": "checkout", "values": "Healthy"}, {"target": CHECKOUT, "value": "Healthy"}],
    )  # fmt: skip
    found = problems(suite(wrong, a_test([MOVED | {"rule": "wbe"}, {"at": 1}]), bogus=1, apiVersion="v0"))
    text = "\n".join(found)
    for part in (
        "apiVersion: must be reactor/v1", "bogus: unknown key",
        "tests[0].expect[1].action: must be 'SetWeights', 'Place', ",
        "tests[0].inputs[0].target: 'checkout' starts with",
        "tests[0].inputs[1].value: unknown key; did you mean values?",
        "tests[1].expect[0].rule: no rule 'wbe' in ruleFiles; did you mean web?",
        "tests[1].expect[1]: needs either action or held",
    ):  # fmt: skip
        assert part in text


def test_a_rule_file_that_is_not_there_or_is_wrong_is_told_with_the_rest() -> None:
    found = problems(json.dumps({"apiVersion": "reactor/v1", "ruleFiles": ["gone.yaml", "bad.yaml"], "tests": []}))
    text = "\n".join(found)
    assert "ruleFiles[0]: rules/gone.yaml cannot be read: No such file or directory" in text
    assert "rules/bad.yaml:1:" in text
    assert "tests: needs at least one test" in text


def test_tests_have_names_of_their_own() -> None:
    assert "test 't' is given twice; first in line 1" in problems(suite(a_test([]), a_test([])))[0]


def test_a_target_that_no_rule_looks_at_is_warned_of() -> None:
    inputs = [{"target": "service/east/shop/typo", "values": "Healthy"}]
    loaded = tester.load_suite(suite(a_test([], inputs)), "rules/shop_test.yaml", read_file)
    assert [warning.message for warning in loaded.warnings] == ["no rule in ruleFiles looks at service/east/shop/typo"]


@pytest.mark.parametrize(
    "text", ["", "- a", "{", "tests: 5", "apiVersion: reactor/v1\nruleFiles: shop.yaml\ntests: {}"]
)
def test_a_file_that_is_no_test_file_is_told(text: str) -> None:
    assert problems(text)


def test_the_schema_accepts_a_test_file_and_refuses_a_misspelled_one() -> None:
    validator = jsonschema.Draft202012Validator(tester.schema())
    validator.check_schema(tester.schema())
    good = read_yaml(suite(a_test([MOVED])), "f")[0].value
    validator.validate(good)
    assert not validator.is_valid(good | {"test": []})
    assert not validator.is_valid(read_yaml(suite(a_test([{"action": "SetWeight"}])), "f")[0].value)


# --- outcomes, absence and commands ---------------------------------------------------------------------------------

MOVES = {"action": "SetWeights", "rule": "web"}


def test_an_outcome_that_is_given_is_waited_for() -> None:
    failed = {"at": 20, "action": MOVES, "status": "Failed", "reason": "Forbidden", "detail": "no patch"}
    held = {"at": 20, "held": "ActionFailed", "rule": "web"}
    assert result([MOVED, held], outcomes=[failed]).passed
    assert not result([MOVED, held]).passed, "by itself it is Done"
    assert result([MOVED, {"absent": {"held": "ActionFailed"}}]).passed


def test_an_outcome_may_come_in_the_second_of_its_action_and_be_followed_by_another() -> None:
    failed = {"at": 15, "action": MOVES, "status": "Failed", "reason": "Conflict"}
    done = {"at": 25, "action": "web/east/shop/TrafficSplit/web/1", "status": "Done"}
    held = {"at": 15, "held": "ActionFailed"}
    gone = {"absent": {"held": "ActionFailed", "since": 25}}
    assert result([MOVED, held, gone], outcomes=[failed, done]).passed


def test_without_outcomes_nothing_follows_an_action() -> None:
    inputs = [{"target": CHECKOUT, "values": "Unhealthy x5 Healthy x5"}, {"target": WEST, "values": "Healthy x10"}]
    away, home = MOVED | {"at": 10}, {"at": 25, "action": "SetWeights", "weights": {"a": 1, "b": 0}}
    assert result([away, home], inputs).passed
    assert result([away, home], inputs, outcomes="auto").passed
    assert result([away, home], inputs, outcomes="none").passed
    late = {"at": 12, "action": {"action": "SetWeights"}, "status": "Failed"}
    failed = {"at": 12, "held": "ActionFailed"}
    assert result([away, failed, home], inputs, outcomes=[late]).passed
    assert not result([away, failed, home], inputs, outcomes="none").passed


def test_an_outcome_of_what_was_not_asked_for_fails_the_test() -> None:
    early = {"at": 14, "action": MOVES, "status": "Failed"}
    one = result([MOVED], outcomes=[early])
    assert not one.passed
    assert [unmet.at for unmet in one.unmet] == [14]
    rehearsed = result([MOVED], rules="dry.yaml", outcomes=[{"at": 20, "action": MOVES}])
    assert not rehearsed.passed, "a rule in DryRun asks nobody to do anything"


def test_a_test_goes_on_until_its_last_outcome_and_absence() -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy Unhealthy"}, {"target": WEST, "values": "Healthy"}]
    assert result([], inputs).passed
    assert not result([{"absent": {"held": "Paused", "until": 15}}], inputs).passed, "the action is not expected"
    assert [said.at for said in result([], inputs, outcomes=[{"at": 30, "action": MOVES}]).said] == [15]


@pytest.mark.parametrize(
    ("absent", "passes"),
    [({"held": "NoHealthySecondary"}, False), ({"held": "NoHealthySecondary", "until": 14}, True),
     ({"held": "NoHealthySecondary", "since": 15}, False), ({"held": "NoHealthySecondary", "since": 16}, True),
     ({"held": "NoHealthySecondary", "rule": "web"}, False), ({"held": "Paused"}, True),
     ({"action": "SetWeights"}, True)],
)  # fmt: skip
def test_absence_of_holds_can_be_asserted(absent: dict[str, Any], passes: bool) -> None:
    inputs = [{"target": CHECKOUT, "values": "Healthy Unhealthy x6"}, {"target": WEST, "values": "Unhealthy x7"}]
    one = result([{"absent": absent}], inputs)
    assert one.passed == passes
    assert passes or ([said.at for said in one.unexpected], len(one.missing)) == ([15], 1)


def test_an_action_that_is_absent_and_happens_is_told_once() -> None:
    one = result([{"absent": {"action": "SetWeights", "until": 20}}])
    assert (len(one.missing), [said.at for said in one.unexpected]) == (1, [15])


def test_people_may_speak_in_a_test() -> None:
    pause = {"at": 12, "pause": {"rule": "web", "by": "ann", "reason": "upgrade"}}
    resume = {"at": 20, "resume": {"rule": "web"}}
    held = {"at": 15, "held": "Paused"}
    assert result([held], commands=[pause]).passed
    assert result([held, MOVED | {"at": 20}], commands=[pause, resume]).passed


def test_a_test_can_say_of_a_command_whatever_people_can() -> None:
    for name, command in COMMANDS.items():
        (word,) = {*get_args(Commanded.model_fields[name].annotation)} - {NoneType}
        says = command.model_fields.keys() - Message.model_fields.keys() - NOT_SAID
        assert word.model_fields.keys() >= says, name


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"expect": [{"absent": {}}]}, "expect[0].absent: needs a key that says what is absent"),
        ({"expect": [{"absent": {"held": "Paused"}, "at": 5}]}, "expect[0]: goes alone"),
        ({"expect": [{"absent": {"held": "Paused"}, "held": "Paused"}]}, "expect[0]: needs either action or held, or"),
        ({"expect": [{"absent": {"held": "Paused", "since": 5, "until": 4}}]}, "absent.until: must be 5 (since) or"),
        ({"expect": [{"absent": {"held": "Paused", "rule": "wbe"}}]}, "no rule 'wbe' in ruleFiles; did you mean web?"),
        ({"outcomes": [{"at": 5, "action": {"rule": "web"}}]}, "outcomes[0].action: needs an action"),
        ({"outcomes": [{"at": 5, "action": {"action": "Place", "rule": "w"}}]}, "no rule 'w' in ruleFiles"),
        ({"outcomes": [{"at": 5, "action": "a", "status": "Broken"}]}, "must be 'Done', 'Failed' or 'Refused'"),
        ({"outcomes": "never"}, "outcomes: must be 'auto' or 'none', got 'never'"),
        ({"outcomes": [{"at": 5, "action": {"action": "Place", "form": "a"}}]}, "unknown key; did you mean from?"),
        ({"outcomes": 5}, "outcomes: must be a list, got 5"),
        ({"commands": [{"at": 5}]}, "needs exactly one command"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_told_at_its_place(keys: dict[str, Any], says: str) -> None:
    found = problems(suite(a_test([]) | keys))
    assert len(found) == 1
    assert says in found[0]
