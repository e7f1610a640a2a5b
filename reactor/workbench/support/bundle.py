"""The files of a bundle: settings, rules, what a process serves, logs; packed without secrets."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml

from reactor.rulefiles.snapshot import find_rule_files
from reactor.runtime.errors import SettingsError
from reactor.settings.model import Settings
from reactor.workbench.support.secrets import HIDDEN, Redactor

SERVED = {"readyz.json": "/readyz", "metrics.txt": "/metrics"}
LINES_MAX = 5000
"""Most lines of decisions and of each log: the newest."""


class File(NamedTuple):
    """One file of the bundle. `problem`: why it is not what it should be; empty: it is."""

    name: str
    text: str
    problem: str = ""


def configured(settings: Settings) -> list[File]:
    """Give the settings and the rule files, with their secrets in them."""
    used = settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [File("settings.yaml", _yaml(used)), *_rule_files(settings)]


async def served(health: str, seconds: float) -> list[File]:
    """Give what a reactor serves. `health`: the URL of its listener for health; empty: not known."""
    return [await _served(name, health, path, seconds) for name, path in SERVED.items()]


def log_file(path: Path) -> File:
    """Give the newest lines of a log, with its secrets in it."""
    try:
        return File(f"logs/{path.name}", last_lines(path.read_text("utf-8", errors="replace")))
    except OSError as error:
        return File(f"logs/{path.name}", "", str(error))


def last_lines(text: str) -> str:
    """Give the newest 5,000 lines."""
    return "".join(text.splitlines(keepends=True)[-LINES_MAX:])


def packed(found: Sequence[File], redactor: Redactor, at: datetime) -> bytes:
    """Give a .tar.gz of the files without secrets, with a list of them and of what is missing."""
    problems = [f"{file.name}: {file.problem or 'ok'}" for file in found]
    listed = File("CONTENTS.txt", f"made {at.isoformat()}\n" + "".join(f"{one}\n" for one in problems))
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for file in (listed, *found):
            body = redactor(file.text).encode(errors="replace")
            entry = tarfile.TarInfo(f"reactor-support/{file.name}")
            entry.size, entry.mtime, entry.mode = len(body), int(at.timestamp()), 0o600
            archive.addfile(entry, io.BytesIO(body))
    return raw.getvalue()


def _rule_files(settings: Settings) -> list[File]:
    found = []
    for pattern in settings.rule_files:
        try:
            found += [_rule_file(path) for path in find_rule_files([pattern])]
        except SettingsError as error:
            found.append(File(f"rules/{Path(pattern).name}.missing", "", str(error)))
    return found


def _rule_file(path: Path) -> File:
    """A rule file without the values of its HTTP headers. One that is no YAML is left out: it could hold anything."""
    name = f"rules/{path.name}"
    try:
        return File(name, _yaml(_without_headers(yaml.safe_load(path.read_text("utf-8")))))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        return File(name, "", f"cannot be read: {type(error).__name__}")


def _without_headers(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_headers(one) for one in value]
    if not isinstance(value, dict):
        return value
    hidden = {
        name: dict.fromkeys(one, HIDDEN) for name, one in value.items() if name == "headers" and isinstance(one, dict)
    }
    return {name: hidden.get(name) or _without_headers(one) for name, one in value.items()}


def _yaml(value: object) -> str:
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


async def _served(name: str, health: str, path: str, seconds: float) -> File:
    if not health:
        return File(name, "", "health.listen has no fixed port: give --health URL")
    limit = aiohttp.ClientTimeout(total=seconds)
    try:
        async with aiohttp.ClientSession(timeout=limit) as session, session.get(health + path) as answer:
            text = await answer.text()
            return File(name, text, "" if answer.status == 200 else f"status {answer.status}")
    except (aiohttp.ClientError, TimeoutError) as error:
        return File(name, "", f"{health}{path}: {error or type(error).__name__}")
