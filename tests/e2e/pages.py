"""The commands and files of a page of docs/, for tests that follow it word by word."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(
    r"^(?P<indent> *)```(?P<kind>sh|bash|console)\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
_NAMED = re.compile(r"# (\S+\.yaml)\n")


def section(page: str, heading: str) -> str:
    """Give the text under a heading of a page, both as written there."""
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


def commands(page: Path) -> list[tuple[str, str]]:
    """Give each command that a page shows, in their order, and what the page says it prints, if it does."""
    found: list[tuple[str, str]] = []
    for block in _SHELL.finditer(page.read_text("utf-8")):
        code = textwrap.dedent(block["code"])
        if block["kind"] == "console":
            found += re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE)
        else:
            found += ((command, "") for command in _whole(code))
    return found


def _whole(code: str) -> Iterator[str]:
    """Give commands with the lines that belong to them: continued ones, quoted ones, loops."""
    pending = ""
    for line in code.splitlines():
        pending += f"{line}\n"
        if not pending.strip() or pending.lstrip().startswith("#"):
            pending = ""
        elif _complete(pending):
            yield pending.strip()
            pending = ""
    assert not pending, f"a command without an end: {pending}"


def _complete(text: str) -> bool:
    try:
        words = " ".join(shlex.split(text, comments=True))
    except ValueError:  # a quote without its end
        return False
    return not text.rstrip().endswith("\\") and len(re.findall(r"\bdo\b", words)) == len(re.findall(r"\bdone\b", words))


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a shell in which `reactor` is the one that is tested."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | more


async def shell(
    command: str, folder: Path, env: Mapping[str, str], *, answers: str = "", codes: Collection[int] = (0,)
) -> str:
    """Run a block of a page as it is there; what it printed is shown if it ends with another code.

    `answers`: what a person types, where it asks.
    """
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", command, cwd=folder, env=env,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed = (await process.communicate(answers.encode()))[0].decode()
    print(f"$ {command}\n{printed}")
    assert process.returncode in codes, f"{command}\nended with {process.returncode}:\n{printed}"
    return printed
