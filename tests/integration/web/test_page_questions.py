"""The five questions that a person can answer from the page alone, as the documentation has them, in Chromium."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser import Browser
from tests.integration.web.busy import BUSY, busy
from tests.integration.web.conftest import EAST, running, settings

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/how-to/use-the-page.md"
ANSWERS = {
    "counting": (rf"In \d+ s checkout moves traffic away from {EAST}", r"To stop it: reactor pause checkout"),
    "held": ("AwaitingApproval a person has to approve it", "What to do: reactor approve pay, or reactor reject pay"),
    "acts": ("SetWeights search on .*The primary has been bad.*Weights: search 0, search-west 1",),
}
"""By part of the page: what it has to say."""


async def test_the_page_answers_the_five_questions(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await browser.go(f"{scene.url}/")
        for part, answers in ANSWERS.items():
            element = f"document.querySelector({'.list' if part == 'acts' else '#' + part!r})"
            await browser.until(f"{element} !== null")
            text = " ".join((await browser.ask(f"{element}.innerText")).split())
            for answer in answers:
                assert re.search(answer, text), (answer, text)


def test_each_picture_that_the_documentation_names_is_made_by_a_test_and_kept_by_the_workflow() -> None:
    named = {name.rpartition("-1280")[0] for name in re.findall(r"`([\w-]+-1280-light)\.png`", PAGE.read_text())}
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*page*.py"))
    made = set(re.findall(r'looks\(f?"([\w-]+)"\)', tests)) | {"now"}
    assert named
    assert named <= made
