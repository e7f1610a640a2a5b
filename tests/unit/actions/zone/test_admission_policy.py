"""The admission policy's expressions, by Google's own CEL: real API servers of 1.30 run the contract test besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

cel = pytest.importorskip("cel_expr_python.cel", reason="the extra cel is not installed")

ROOT = Path(__file__).resolve().parents[4]
POLICY = ROOT / "deploy/kustomize/components/zone-isolation/admission-policy.yaml"
PLAIN, SHOOT = "reactor/isolated-zone", "shoot.gardener.cloud/isolated-zone"


def _value(expression: str, old: Any, new: Any) -> bool:
    compiled = cel.NewEnv(variables={"object": cel.Type.DYN, "oldObject": cel.Type.DYN}).compile(expression)
    value = compiled.eval(data={"object": new, "oldObject": old})
    assert value.type() == cel.Type.BOOL, value.value()
    return bool(value.value())


def allowed(before: dict[str, str] | None, after: dict[str, str] | None) -> bool:
    """True if the policy lets an object's annotations change so; None: it has none at all."""
    spec = next(yaml.safe_load_all(POLICY.read_text()))["spec"]
    old, new = ({"metadata": {} if notes is None else {"annotations": notes}} for notes in (before, after))
    if not all(_value(condition["expression"], old, new) for condition in spec["matchConditions"]):
        return True
    return all(_value(validation["expression"], old, new) for validation in spec["validations"])


@pytest.mark.parametrize("key", [PLAIN, SHOOT])
@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        (None, "use1-az6", True),
        ("use1-az6", None, True),
        ("use1-az6", "use1-az6", True),
        ("use1-az6", "use1-az1", False),
        ("use1-az6", "", False),
    ],
)
def test_a_zone_is_added_or_removed_but_never_changed_for_another(
    key: str, before: str | None, after: str | None, answer: bool
) -> None:
    notes = [{"other": "x"} | ({key: zone} if zone is not None else {}) for zone in (before, after)]
    assert allowed(notes[0], notes[1]) is answer


def test_objects_without_annotations_are_no_error() -> None:
    assert allowed(None, None)
    assert allowed(None, {PLAIN: "use1-az6"})
    assert allowed({PLAIN: "use1-az6"}, None)
    assert allowed({"other": "x"}, {"other": "y"})
