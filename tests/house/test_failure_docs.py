"""Every reason for which an action of a workload fails is told with what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([
    *(ROOT / "reactor" / "actions" / "workload").glob("*.py"), *(ROOT / "reactor" / "actions" / "karmada").glob("*.py"),
])  # fmt: skip
PAGE = (ROOT / "docs" / "how-to" / "read-the-status.md").read_text("utf-8")


def words() -> set[str]:
    """All words that a carrier can give as the reason of a failure: of a Declined, or of what a cluster has refused."""
    texts = [path.read_text("utf-8") for path in SOURCES]
    declined = {word for text in texts for word in re.findall(r'Declined\(\s*"(\w+)"', text)}
    refused = {word for text in texts for word in re.findall(r', "([A-Z]\w+)"\),?$', text, re.MULTILINE)}
    return (declined | refused) - {"Stale", "DryRun"}  # refused, and not failed


def test_the_words_are_found() -> None:
    assert {"QuotaExceeded", "NotInSource", "BindingMissing", "CannotSuppress"} <= words()


@pytest.mark.parametrize("word", sorted(words()))
def test_for_every_failure_of_a_workload_it_is_said_what_to_do(word: str) -> None:
    rows = [row for row in PAGE.splitlines() if re.match(rf"^\| .*`{word}`.* \| .{{20,}} \|$", row)]
    assert len(rows) == 1, word
