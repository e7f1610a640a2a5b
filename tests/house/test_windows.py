"""A kind takes the length of a wait for what others have seen from `rule.window`, which adds what clocks may differ.

A length that is made otherwise is of one clock alone, and has its reason here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_ONE_CLOCK = {
    "max((guards.cooldown_seconds for guards in limits.own), default=0)": "a limit: quiet time after an act of ours",
    "rule.cooldown_seconds": "a limit: quiet time after an isolation",
    "fact.for_seconds": "a person's command says how long it counts",
    "fact.stale_seconds": "how long a source's word counts; the window after it is longer",
    "fact.valid_seconds": "how long a source's word proves",
    "new.resolution_seconds": "a source's own clock, between two of its looks",
    "source.stale_seconds": "how long our own word counts",
    "rule.source.refresh_seconds": "how often we repeat our own word",
    "rule.readings.get(name, NO_READINGS).range_seconds": "what a query reads; the skew is added beside it",
    "RESET_SECONDS": "a copy that was well for so long begins anew: nothing is done for it",
    "block_seconds": "a limit: where a copy may not be again",
    "practice.duration_seconds": "a drill: begun and ended by our clock",
    "rule.practice.duration_seconds": "the same",
    "self.recovery_seconds": "only whether there is any",
    "rule.expiry_seconds": "people are told by our clock that an isolation lasts",
    "seconds_for(rule, step, undo=not forward)": "how long a step of ours may take",
    "step_seconds": "the same",
}


def lengths(tree: ast.AST) -> Iterator[str]:
    """Values that are made into a length otherwise than by `window`, or compared with one."""
    inside = {id(one) for call in _calls(tree, "window") for arg in call.args for one in ast.walk(arg)}
    for call in _calls(tree, "timedelta"):
        values = [*call.args, *(one.value for one in call.keywords)]
        yield from (ast.unparse(one) for one in values if not isinstance(one, ast.Constant))
    for compared in ast.walk(tree):
        if isinstance(compared, ast.Compare) and isinstance(compared.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            for one in ast.walk(compared):
                if isinstance(one, ast.Attribute) and one.attr.endswith("_seconds") and id(one) not in inside:
                    yield from [] if one.attr == "total_seconds" else [ast.unparse(one)]


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and (getattr(one.func, "attr", "") or getattr(one.func, "id", "")) == name:
            yield one


def found() -> set[str]:
    files = [path for folder in ("kinds", "engine") for path in (ROOT / "rules" / folder).rglob("*.py")]
    return {length for path in files for length in lengths(ast.parse(path.read_text("utf-8")))}


def test_every_wait_for_what_others_have_seen_is_longer_by_what_clocks_may_differ() -> None:
    assert found() - OF_ONE_CLOCK.keys() == set(), "use rule.window(...), or say here why one clock counts alone"


def test_the_list_has_nothing_that_is_no_more() -> None:
    assert OF_ONE_CLOCK.keys() - found() == set()


def test_what_a_kind_could_forget_is_found() -> None:
    kind = "until = since + timedelta(seconds=rule.toleration_seconds)\nif waited >= rule.recovery_seconds: pass"
    assert {*lengths(ast.parse(kind))} == {"rule.toleration_seconds", "rule.recovery_seconds"}
    assert not {*lengths(ast.parse("over = now >= since + rule.window(rule.toleration_seconds)"))}
