"""A page of docs/ of which a test runs each command: at the end none is left that nothing runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.natscli import nats
from tests.e2e.pages import ROOT, commands, environment, files, shell
from tests.e2e.typed import typed
from tests.e2e.unfollowed import not_run_here

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)")
_ASKED = re.compile(r"(\[y/N\]: )")
_ANSWERED = re.compile(r"(?<=\[y/N\]:) y$")
"""On a page a person's answer ends the line."""
KUBECTL = """#!/bin/sh
# A cluster gives what lies here, and takes what it is given.
case "$*" in *get*) cat "$0.yaml";; *) cat;; esac
"""


class Followed:
    """`with Followed(page, folder) as page:` runs commands there, and demands at the end that all were run.

    `instead`: for addresses of the page those of servers of the test.
    """

    def __init__(
        self, page: str, folder: Path, *, part: Callable[[str], bool] = bool, instead: Mapping[str, str] | None = None,
        **env: str,
    ) -> None:  # fmt: skip
        """`part`: which commands, where another test of tests/e2e/test_how_to.py runs all others."""
        self.page = page
        self.folder = folder
        self.instead = dict(instead or {})
        self.text = (ROOT / page).read_text("utf-8")
        shown = commands(ROOT / page)
        self.left = [one for one, _ in shown if part(one) and not not_run_here(page, one)]
        self._prints = [(one, printed) for one, printed in shown if printed]
        self.bin = folder / "bin"
        self._before = ""
        """Text that later commands of the page need: variables."""
        self._env = environment(HOME=str(folder), COLUMNS="300", **env)
        for name in [name for name in self._env if name.startswith("REACTOR_") and name not in env]:
            del self._env[name]
        self.bin.mkdir(parents=True, exist_ok=True)
        folders = [str(self.bin), *([str(found.parent)] if (found := nats()) else [])]
        self._env["PATH"] = os.pathsep.join([*folders, self._env["PATH"]])
        self._typed = typed(self.bin)

    def __enter__(self) -> Self:
        self._typed.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._typed.__exit__(kind, error, trace)
        if error is None:
            assert not self.left, f"{self.page}: nothing runs {self.left}; run them, or say why not in unfollowed.py"

    def save(self, *names: str, into: str = ".") -> None:
        """Write the files that the page shows: all, or these."""
        (self.folder / into).mkdir(exist_ok=True)
        for name, content in files(self.text):
            if not names or name in names:
                (self.folder / into / Path(name).name).write_text(content, "utf-8")

    def program(self, name: str, text: str) -> Path:
        """Let a command be this script."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)
        return self.bin / name

    def kubectl(self, gives: str) -> None:
        """Let `kubectl get` print this, and `kubectl apply` what it is given."""
        self.program("kubectl", KUBECTL).with_suffix(".yaml").write_text(gives, "utf-8")

    def take(self, start: str) -> str:
        """Give the next command that begins so: it is run by what the caller does with it."""
        command = next((one for one in self.left if one.startswith(start)), None)
        assert command is not None, f"{self.page} does not show (or not so often): {start}"
        self.left.remove(command)
        for there, here in self.instead.items():
            command = command.replace(there, here)
        return command

    def shown(self, start: str) -> str:
        """Give what the page says that the next command that begins so prints."""
        at = next(place for place, (one, _) in enumerate(self._prints) if one.startswith(start))
        return self._prints.pop(at)[1]

    async def run(self, start: str, *, answers: str = "", codes: Collection[int] = (0,)) -> str:
        """Run the next command that begins so, as a person types it, and give what it printed."""
        command = self.take(start)
        if _sets_a_variable(command):
            self._before += f"{command}\n"
            return ""
        return await shell(f"{self._before}{command}", self.folder, self._env, answers=answers, codes=codes)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of its shells."""
        return dict(self._env)

    async def also(self, command: str, *, codes: Collection[int] = (0,)) -> str:
        """Run a command that is not of the page, and give what it printed."""
        return await shell(command, self.folder, self._env, codes=codes)

    async def run_all(self) -> str:
        """Run all that are left, one after the other."""
        return "".join([await self.run(command) for command in tuple(self.left)])


def missing(shown: str, printed: str) -> list[str]:
    """Give the lines that a page shows and that were not printed, whatever the times and the width of columns."""
    lines = {_shape(line) for line in _ASKED.sub(r"\1\n", printed).splitlines()}
    return [line for line in shown.splitlines() if line.strip() and _shape(_ANSWERED.sub("", line)) not in lines]


def _shape(line: str) -> str:
    return " ".join(_TIME.sub("T", line).split())


def _sets_a_variable(command: str) -> bool:
    name, equals, _ = command.removeprefix("export ").partition("=")
    return bool(equals) and name.isidentifier() and "\n" not in command
