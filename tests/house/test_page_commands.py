"""Each command that a page shows is run by a test, or it is listed with the reason why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.pages import commands
from tests.e2e.unfollowed import ELSEWHERE, NEVER, OTHERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if commands(page)]
FOLLOWING = "".join(path.read_text("utf-8") for path in sorted((ROOT / "tests/e2e").glob("test_how_to*.py")))
LISTED = [
    (page, start, why)
    for listed in (ELSEWHERE, NEVER)
    for page, starts in listed.items()
    for start, why in starts.items()
]


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_page_with_commands_is_followed_by_a_test(page: Path) -> None:
    """tests/e2e/followed.py fails where a command of the page is left that neither the test runs nor the lists name."""
    if other := OTHERS.get(shown(page)):
        assert page.name in (ROOT / other).read_text("utf-8"), f"{other} does not follow {shown(page)}"
        return
    listed = [start for of, start, _ in LISTED if of == shown(page)]
    left = [one for one, _ in commands(page) if not any(one.startswith(start) for start in listed)]
    assert not left or f'"{shown(page)}"' in FOLLOWING, (
        f"no test runs {left}: add the page to tests/e2e/test_how_to*.py, or the commands to tests/e2e/unfollowed.py"
    )


@pytest.mark.parametrize(("page", "start", "why"), LISTED)
def test_a_command_that_is_listed_is_there_with_its_test_or_its_reason(page: str, start: str, why: str) -> None:
    assert any(one.startswith(start) for one, _ in commands(ROOT / page)), "the page does not show it any more"
    assert len(why) > 20
    for path in re.findall(r"(?:tests|\.github)/[\w/.]+\.(?:py|yml)", why):
        assert (ROOT / path).is_file(), path


def test_pages_that_another_test_follows_are_there() -> None:
    assert [page for page in OTHERS if not (ROOT / page).is_file()] == []
