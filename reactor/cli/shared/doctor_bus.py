"""Checks of the bus by `reactor doctor`: as `reactor bus check` and `reactor members` do, on a connection each."""

from __future__ import annotations

import shlex
from datetime import timedelta

from bus.embedded import find_binary
from bus.errors import BusError, NoBinary, WrongServer
from reactor.cli.shared.bus_findings import check_all
from reactor.cli.shared.printing import warn
from reactor.fleet.presence import present
from reactor.process.session import address, connected
from reactor.runtime.errors import ReactorError
from reactor.runtime.installed_versions import installed
from reactor.settings.bus_settings import BusSettings
from reactor.views.membership import owners
from reactor.workbench.doctor import bus_diagnosis as checks
from reactor.workbench.doctor import members_diagnosis
from reactor.workbench.doctor.finding import Finding, Findings

PATIENCE = timedelta(seconds=3)
UNREACHED = "the bus could not be asked"


async def bus_findings(settings: BusSettings, url: str | None, suffix: str, *, before_install: bool) -> Findings:
    """Give what `reactor bus check` finds. `suffix`: the options that name this bus."""
    if before_install and not (url or settings.url):
        return [_embedded(settings)]
    try:
        async with connected(settings, address(settings, url), "doctor", patience=PATIENCE, read_only=False) as bus:
            checked = await check_all(bus, settings)
    except (ReactorError, WrongServer) as error:
        fix = "reactor run, or name the bus with --bus or bus.url; docs/how-to/external-nats.md has what it needs"
        return [*_unasked(str(error), fix)]
    except BusError as error:
        return [*_unasked(str(error), "start nats-server, or correct bus.url and the network on the way")]
    return checks.findings(checked, before_install=before_install, suffix=suffix)


def _embedded(settings: BusSettings) -> Finding:
    """Check the embedded server before an installation, when nothing runs yet: what will be started has to be there."""
    try:
        binary = find_binary(settings.server_binary)
    except NoBinary as error:
        return Finding(checks.GROUP, "binary", "failed", str(error), "pip install 'alert-reactor[embedded]'")
    return Finding(checks.GROUP, "binary", "ok", f"reactor run will start {binary}")


def _unasked(detail: str, fix: str) -> Findings:
    clock = Finding(checks.CLOCKS, checks.GROUP, "skipped", UNREACHED)
    return [Finding(checks.GROUP, "connection", "failed", " ".join(detail.split()), fix), clock]


async def member_findings(settings: BusSettings, url: str | None, digest: str) -> Findings:
    """Give what processes on the bus and partitions are like. `digest`: of the rules here."""
    try:
        async with connected(settings, address(settings, url), "doctor", patience=PATIENCE) as bus:
            processes = await present(bus)
            _, partitions = await owners(bus, warn)
    except (ReactorError, BusError) as error:
        return unasked_members(f"{UNREACHED}: {' '.join(str(error).split())}")
    return members_diagnosis.findings(processes, partitions, digest, installed("alert-reactor"))


def unasked_members(why: str) -> Findings:
    """Give that the processes on the bus were not asked."""
    group, versions = members_diagnosis.GROUP, members_diagnosis.VERSIONS
    return [Finding(group, "all", "skipped", why), Finding(versions, group, "skipped", why)]


def suffix(config: object, url: str | None) -> str:
    """Give the options with which other commands find the same bus. A URL with a password is not repeated."""
    shown = "URL" if url and "@" in url else url
    options = [*(("--config", str(config)) if config else ()), *(("--bus", shown) if shown else ())]
    return "".join(f" {shlex.quote(word)}" for word in options)
