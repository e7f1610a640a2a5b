"""`reactor support-bundle`: one file for those who help, without secrets."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor.cli.shared.options import SecondsType, bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import printed, say, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reactor.settings.model import Settings
    from reactor.workbench.support.bundle import File

PARTS = {
    "version.json": ["version", "-o", "json"],
    "doctor.json": ["doctor", "-o", "json"],
    "members.json": ["members", "-o", "json"],
    "status.json": ["status", "-o", "json"],
    "bus.json": ["bus", "status", "-o", "json"],
    "decisions.jsonl": ["audit", "export"],
}
"""The commands whose output is a file of the bundle. All but `version` take `--config` and `--bus`."""


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@click.option(
    "--output-file", type=click.Path(path_type=Path, dir_okay=False), default=Path("reactor-support.tar.gz"),
    show_default=True, help="File to write. It must not exist.",
)  # fmt: skip
@click.option(
    "--log", "logs", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="Log file to include, such as the output of `kubectl logs`.",
)  # fmt: skip
@click.option(
    "--health", metavar="URL", help="Where a reactor serves /metrics; default: health.listen of the settings."
)
@click.option(
    "--timeout", type=SecondsType(1, 600), default=10.0, show_default=True, metavar="SECONDS",
    help="Time limit of each request for --health.",
)  # fmt: skip
@output_option("text", "json", "yaml")
def support_bundle(
    config: Path | None, bus: str | None, output_file: Path, logs: tuple[Path, ...], health: str | None, timeout: float,
    output: str,
) -> None:  # fmt: skip
    """Collect what a person needs to help you, in one file.

    The file is a .tar.gz with the settings, the rule files, the output of version, doctor, members, status, bus
    status and audit export, and /readyz and /metrics of a reactor. The command changes nothing.

    Passwords, tokens, keys and the values of HTTP headers are replaced by ***. Names of targets, labels of alerts and
    comments of people are not: look through the file before you send it.

    Exit code: 0; 1 if the file cannot be written, or the settings cannot be read. A part that cannot be collected is
    named, and the rest is written.
    """
    with told():
        from reactor.runtime.clock import Clock
        from reactor.settings import model as settings_
        from reactor.workbench.support.bundle import packed
        from reactor.workbench.support.secrets import Redactor

        settings = settings_.load(config)
        found = []
        for file in _collected(settings, config, bus, logs, health, timeout):
            found.append(file)
            if file.problem:
                warn(f"{file.name}: {file.problem}")
        redactor = Redactor.of(settings, *_embedded(settings), bus or "")
        _write(output_file, packed(found, redactor, Clock().now()))
    say(_told(output_file, found) if output == "text" else printed(_data(output_file, found), output))


def _told(bundle: Path, found: Sequence[File]) -> str:
    missing = sum(bool(file.problem) for file in found)
    return f"{bundle}: {len(found)} files" + (f", {missing} of them incomplete" if missing else "")


def _data(bundle: Path, found: Sequence[File]) -> dict[str, object]:
    return {"bundle": str(bundle), "files": [{"name": file.name, "problem": file.problem} for file in found]}


def _collected(
    settings: Settings, config: Path | None, bus: str | None, logs: tuple[Path, ...], health: str | None, seconds: float
) -> Iterator[File]:
    """Give each file with its secrets in it."""
    from reactor.workbench.support.bundle import configured, log_file, served

    yield from configured(settings)
    options = [*(["--config", str(config)] if config else []), *(["--bus", bus] if bus else [])]
    for name, words in PARTS.items():
        yield _said(name, [*words, *(options if name != "version.json" else [])])
    host, port = settings.health_address
    yield from asyncio.run(served(health or (f"http://{host}:{port}" if port else ""), seconds))
    yield from map(log_file, logs)


def _said(name: str, words: list[str]) -> File:
    """File with the output of a command. CliRunner is click's own way to run one and capture that."""
    from click.testing import CliRunner

    from reactor.cli.main import cli
    from reactor.workbench.support.bundle import File, last_lines

    result = CliRunner().invoke(cli, words)
    return File(name, last_lines(result.output), "" if result.exit_code == 0 else f"exit code {result.exit_code}")


def _embedded(settings: Settings) -> list[str]:
    """The token of an embedded bus, which its URL holds."""
    from urllib.parse import urlsplit

    file = settings.bus.store / "url"
    password = urlsplit(file.read_text("utf-8").strip()).password if file.is_file() else None
    return [password] if password else []


def _write(path: Path, body: bytes) -> None:
    """Write a file that only its owner can read. Raises SettingsError where it exists, or cannot be written."""
    from reactor.runtime.errors import SettingsError

    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(body)
    except FileExistsError as error:
        raise SettingsError(f"{path} exists: name another file with --output-file") from error
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
