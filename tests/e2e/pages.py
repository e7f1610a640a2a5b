"""The commands and files of a page of docs/, for tests that follow it word by word."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# (\S+\.yaml)\n")


def section(page: str, heading: str) -> str:
    """Give what stands under a heading of a page, both as written there."""
    _, found, text = (ROOT / "docs" / page).read_text("utf-8").partition(f"\n## {heading}\n")
    assert found, f"{page} has no heading {heading}"
    return text.partition("\n## ")[0]


def blocks(text: str, *languages: str) -> list[str]:
    """Give the code blocks of these languages, in their order."""
    return [code for language, code in _FENCE.findall(text) if language in languages]


def files(text: str) -> Iterator[tuple[str, str]]:
    """Give name and content of each file that a block shows: its first line is `# name.yaml`."""
    for code in blocks(text, "yaml"):
        if named := _NAMED.match(code):
            yield named[1], code


def typed(console: str) -> list[str]:
    """Give the commands of a block that shows a prompt."""
    return re.findall(r"^\$ (.*)$", console, re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a shell in which `reactor` is the one that is tested."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | more


async def shell(command: str, folder: Path, env: Mapping[str, str]) -> str:
    """Run a block of a page as it stands there; what it printed is shown if it fails."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", command, cwd=folder, env=env,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed = (await process.communicate())[0].decode()
    print(f"$ {command}{printed}")
    assert process.returncode == 0, f"{command}\n{printed}"
    return printed
