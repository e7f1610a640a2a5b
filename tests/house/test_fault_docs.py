"""docs/promises.md has a row for each kind of fault that chaos knows, and the changelog names the release before."""

from __future__ import annotations

import re

from tests import earlier
from tests.chaos.faults import catalog
from tests.house.test_deploy_files import ROOT


def test_each_kind_of_fault_has_its_row_in_one_table() -> None:
    _, _, rest = (ROOT / "docs/promises.md").read_text("utf-8").partition("| fault | what happens |\n| --- | --- |\n")
    table, _, _ = rest.partition("\n\n")
    rows = re.findall(r"^\| `([\w-]+)(?::[\w…-]*)?` \|", table, re.MULTILINE)
    assert len(rows) == len(table.splitlines())
    assert set(rows) == {name.partition(":")[0] for name in catalog()} - {"none"}


def test_the_changelog_names_the_commit_of_the_release_that_others_share_a_fleet_with() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8").partition(f"## [{earlier.VERSION}]")[2]
    named = earlier.COMMIT.search(text.partition("\n### ")[0])
    assert named is not None
    if not earlier.lacks():
        assert earlier.commit().startswith(named[0])
