"""The five questions that a person can answer from the page alone, as the documentation has them, in Chromium."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser import Browser
from tests.integration.web.busy import BUSY, busy
from tests.integration.web.conftest import running, settings

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/how-to/use-the-page.md"
QUESTIONS = 5


def answers() -> list[tuple[str, list[str]]]:
    """Give of each question of the documentation the heading of its answer, and what is said there."""
    table = PAGE.read_text().partition("| question | picture | answer |")[2].partition("\n\n")[0]
    rows = [line.split(" | ")[-1] for line in table.splitlines()[2:]]
    return [(re.findall(r"\*([^*]+)\*", row)[0], re.findall(r'"([^"]+)"', row)) for row in rows]


async def test_the_page_answers_the_five_questions_as_the_documentation_has_them(
    tmp_path: Path, browser: Browser
) -> None:
    documented = answers()
    assert len(documented) == QUESTIONS
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await browser.go(f"{scene.url}/")
        for heading, quoted in documented:
            first = " li" if heading == "Recent actions" else ""
            part = (f"[...document.querySelectorAll('main section')].find((one) => one.querySelector('h2')?.innerText"
                    f".startsWith('{heading}'))?.querySelector('.cards, .list{first}')?.innerText")  # fmt: skip
            text = " ".join((await browser.until(part)).split())
            assert quoted, heading
            for answer in quoted:
                assert re.search(re.sub(r"\\ \d+\\ s\\ ", r" \\d+ s ", re.escape(answer)), text), (answer, text)


def test_each_picture_that_the_documentation_names_is_made_by_a_test_and_kept_by_the_workflow() -> None:
    named = {name.rpartition("-1280")[0] for name in re.findall(r"`([\w-]+-1280-light)\.png`", PAGE.read_text())}
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*page*.py"))
    made = set(re.findall(r'looks\(f?"([\w-]+)"\)', tests)) | {"now"}
    assert named
    assert named <= made
