"""Any input is read, or refused in words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import __main__ as fuzzing
from tests.fuzz.targets import EDITS, TARGETS

SECONDS = int(os.environ.get("FUZZ_SECONDS", "60"))
"""For all targets together."""
SEEDS = [(name, seed) for name in TARGETS for seed in sorted((fuzzing.SEEDS / name).iterdir())]


def test_every_target_has_seeds_and_can_be_asked_for() -> None:
    assert tuple(TARGETS) == fuzzing.TARGETS
    assert {name for name, _ in SEEDS} == {*TARGETS}


@pytest.mark.parametrize(("name", "seed"), SEEDS, ids=lambda value: value.name if isinstance(value, Path) else value)
def test_what_was_found_once_stays_mended(name: str, seed: Path) -> None:
    TARGETS[name](seed.read_bytes())


ANY = st.binary(max_size=200) | st.binary(max_size=40).map(lambda edits: EDITS + edits) | st.text().map(str.encode)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=100, deadline=None)
@given(data=ANY)
def test_any_bytes_are_read_or_refused(name: str, data: bytes) -> None:
    TARGETS[name](data)


@pytest.mark.alone
@pytest.mark.parametrize("name", TARGETS)
def test_a_fuzzer_that_sees_the_code_finds_nothing(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this machine")
    code = fuzzing.run(name, max(1, SECONDS // len(TARGETS)), tmp_path)
    said = capfd.readouterr().err
    assert code == 0, said[-4000:]
    assert "Done " in said
