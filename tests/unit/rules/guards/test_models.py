"""Keys of a rule file under guards, and the messages about mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rules.core.errors import InvalidFiles
from rules.rulefile.guards import FileGuard, Guards
from tests.unit.rules.builders import failover, rule_set

EVERYTHING = {
    "maxConcurrent": 2, "ratePerSecond": 0.5, "maxUnhealthy": "40%", "minHealthy": 3, "rounding": "Down",
    "peers": "cluster/*", "disruption": {"unhealthyAt": "55%", "secondaryRatePerSecond": 0.01, "rounding": "Up"},
    "cooldownSeconds": 600,
    "blockedWindows": [{"cron": "0 22 * * 5", "durationSeconds": 28800, "timezone": "Europe/Berlin"}],
    "approval": {"expireSeconds": 300},
}  # fmt: skip


def told(guards: dict[str, Any]) -> list[str]:
    """Messages to the author of a rule with these guards."""
    with pytest.raises(InvalidFiles) as caught:
        rule_set(failover(guards=guards))
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_a_rule_takes_every_guard() -> None:
    guards = rule_set(failover(guards=EVERYTHING)).rules[0].guards
    assert guards is not None
    assert guards.model_dump(by_alias=True, exclude_none=True, mode="json") == EVERYTHING | {
        "disruption": EVERYTHING["disruption"] | {"largeSize": 0}  # type: ignore[operator]
    }


def test_what_is_not_said_limits_nothing() -> None:
    guards = Guards()
    assert not guards.shared
    assert guards.cooldown_seconds == 0
    assert guards.approval is None
    assert rule_set(failover(guards={"approval": {}})).rules[0].guards.approval.expire_seconds == 900  # type: ignore[union-attr]


def test_a_window_is_in_utc_unless_it_says_otherwise() -> None:
    window = Guards.model_validate({"blockedWindows": ({"cron": "0 0 * * *", "durationSeconds": 60},)}).blocked_windows[
        0
    ]
    assert window.timezone == "UTC"


def window(**keys: Any) -> dict[str, Any]:
    return {"blockedWindows": [{"cron": "0 0 * * *", "durationSeconds": 60} | keys]}


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"maxConcurrent": 0}, ".maxConcurrent: must be 1 or more, got 0"),
    ({"ratePerSecond": 0}, ".ratePerSecond: must be 0.0001 or more, got 0"),
    ({"maxUnhealthy": "forty"}, '.maxUnhealthy: must be a count, or a percentage in quotes such as "40%", got'),
    ({"maxUnhealthy": "140%"}, ".maxUnhealthy: must be a count, or a percentage"),
    ({"maxUnhealthy": "40%"}, ": rounding is required with 40%: 40% of 6 peers is 2 rounded Down, and 3 rounded Up"),
    ({"maxUnhealthy": 2, "rounding": "Up"}, ": rounding only goes with a percentage in maxUnhealthy or minHealthy"),
    ({"maxConcurrent": 1, "peers": "a/*"}, ": peers only goes with maxUnhealthy, minHealthy or disruption: remove it"),
    ({"minHealthy": 1, "peers": "cluster//x"}, ".peers: 'cluster//x' has an empty segment"),
    ({"maxUnhealthy": "40%", "rounding": "Nearest"}, ".rounding: must be 'Down' or 'Up', got 'Nearest'"),
    ({"maxUnhealty": 1}, ".maxUnhealty: unknown key; did you mean maxUnhealthy?"),
    ({"disruption": {"unhealthyAt": "55%"}}, ".disruption.secondaryRatePerSecond: required, and not there"),
    (window(cron="0 25 * * *"), ".blockedWindows[0].cron: '0 25 * * *' is no cron expression: Bad hour"),
    (window(cron="@daily"), ".blockedWindows[0].cron: needs five fields"),
    (window(cron="0 0 31 2 *"), ".blockedWindows[0].cron: '0 0 31 2 *' is no cron expression"),
    (window(durationSeconds=0), ".blockedWindows[0].durationSeconds: must be 1 or more, got 0"),
    (window(timezone="Mars/Olympus"), ".blockedWindows[0].timezone: 'Mars/Olympus' is no time zone: write one of"),
    (window(timezone="../etc/passwd"), ".blockedWindows[0].timezone: '../etc/passwd' is no time zone"),
]


@pytest.mark.parametrize(("guards", "message"), MISTAKES)
def test_a_mistake_is_told_with_what_to_do(guards: dict[str, Any], message: str) -> None:
    [problem] = told(guards)
    assert problem.startswith(f"rules[0].guards{message}")


@pytest.mark.parametrize("limit", ["0%", "100%"])
def test_all_and_nothing_need_no_rounding(limit: str) -> None:
    assert Guards(max_unhealthy=limit).max_unhealthy == limit


def test_a_guard_of_a_file_names_the_rules_that_share_it() -> None:
    guard = FileGuard.model_validate({"rules": ["shop-*", "pay"], "maxConcurrent": 1}, strict=False)
    assert guard.label == "shop-*,pay"
    with pytest.raises(ValidationError, match="rules"):
        FileGuard.model_validate({"maxConcurrent": 1})
