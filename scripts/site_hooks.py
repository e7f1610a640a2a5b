"""Hooks of mkdocs: its order from docs/index.md, links to the code, and llms.txt for machines.

mkdocs.yml names this file under `hooks`; mkdocs calls the functions whose names it knows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)#\s]+\.md)\)")
_OUT = re.compile(r"\]\(((?:\.\./)+[^)\s]*)\)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
LISTS = {"decisions/README.md": "Decisions behind the design"}
"""Pages that list further ones, and the name of that part."""

_texts: dict[str, str] = {}
"""Each page's Markdown by its place, for llms.txt."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the order of the pages from docs/index.md, so that there is one table of contents."""
    docs = Path(config.docs_dir)
    _, *parts = _HEADING.split((docs / "index.md").read_text("utf-8"))
    nav: list[Any] = [{"Home": "index.md"}]
    seen: set[str] = set()
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        nav.append({heading: [_entry(docs, target) for target in _new(_linked(text, ""), seen)]})
    for place in sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md")):
        if place not in seen and place != "index.md":
            nav[-1][next(iter(nav[-1]))].append(place)
    config.nav = nav
    return config


def _linked(text: str, folder: str) -> Iterable[str]:
    return (posixpath.normpath(posixpath.join(folder, target)) for _, target in _LINK.findall(text))


def _new(targets: Iterable[str], seen: set[str]) -> list[str]:
    found = []
    for target in targets:
        if target not in seen and not target.startswith(".."):
            seen.add(target)
            found.append(target)
            if target in LISTS:
                seen.update(_pages_of(target))
    return found


def _pages_of(listing: str, docs: Path = Path(__file__).parents[1] / "docs") -> list[str]:
    return list(dict.fromkeys(_linked((docs / listing).read_text("utf-8"), posixpath.dirname(listing))))


def _entry(docs: Path, target: str) -> Any:
    return {LISTS[target]: [target, *_pages_of(target, docs)]} if target in LISTS else target


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs' call
    """Let links that lead out of docs/ lead to the repository."""
    _texts[page.file.src_uri] = markdown
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def absolute(link: re.Match[str]) -> str:
        path, _, anchor = link[1].partition("#")
        place = posixpath.normpath(posixpath.join(folder, path))
        if place.startswith("docs/") or place == "docs":
            return link[0]
        return f"]({config.repo_url}/blob/main/{place}{'#' + anchor if anchor else ''})"

    return _OUT.sub(absolute, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt (what pages there are, https://llmstxt.org) and llms-full.txt (all of them)."""
    site = Path(config.site_dir)
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Pages", ""]
    for place, text in sorted(_texts.items()):
        title = _TITLE.search(text)
        lines.append(f"- [{title[1] if title else place}]({place}): {_first_sentence(text)}")
        target = site / place  # the Markdown itself, beside its page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(text for _, text in sorted(_texts.items())), encoding="utf-8")


def _first_sentence(text: str) -> str:
    """The first sentence of the page that is neither heading, list, table nor code."""
    body = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraph = next((line for line in body.splitlines() if line and line[0] not in "#|-<![`"), "")
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", paragraph).partition(". ")[0].rstrip(".") + "."
