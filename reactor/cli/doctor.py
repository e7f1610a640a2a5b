"""`reactor doctor`: what keeps a reactor from working, and what mends it."""

from __future__ import annotations

import asyncio
import logging
import platform
import sys
from collections import Counter
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reactor.cli.shared.options import SecondsType, bus_option, output_option
from reactor.cli.shared.printing import printed, say
from reactor.runtime.installed_versions import installed
from reactor.runtime.visible import visible

if TYPE_CHECKING:
    from reactor.settings.model import Settings
    from reactor.workbench.doctor.finding import Finding, Findings

GROUPS = ("settings", "rules", "bus", "members", "clusters", "prometheus", "alertmanager", "clocks", "disk", "versions")
"""Groups of checks, in the order in which they are printed."""
UNREAD = "the settings cannot be used"


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@click.option("--pre", is_flag=True, help="Check before an install: streams, buckets and members may be missing.")
@click.option(
    "--timeout", type=SecondsType(1, 600), default=10.0, show_default=True, metavar="SECONDS",
    help="Time limit of each check.",
)  # fmt: skip
@output_option()
@click.argument("files", nargs=-1)
def doctor(
    config: Path | None, bus: str | None, output: str, files: tuple[str, ...], timeout: float, *, pre: bool
) -> None:
    """Find what keeps the reactor from working.

    The command checks settings, rule files, the bus, its members, clusters, Prometheus, Alertmanager, clocks, disk and
    versions. FILES are rule files, in addition to those of the settings. Each failed check is printed with its fix. The
    command writes one value to the bus for the test and changes nothing else.

    \b
    reactor doctor --pre --config reactor.yaml    before an install
    reactor doctor --config reactor.yaml          when something is wrong

    Exit code: 0 if no check failed; 1 if a check failed. Warnings and skipped checks do not count.
    """
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.CRITICAL)  # what clients would log is in the findings
    try:
        found = sorted(asyncio.run(_examine(config, bus, files, timeout, pre=pre)), key=_place)
    finally:
        root.setLevel(level)
    rows = [asdict(one) for one in found]
    say(printed({"checks": rows}, output, lambda _: _shown(found)))
    sys.exit(int(any(one.status == "failed" for one in found)))


def _place(finding: Finding) -> int:
    return GROUPS.index(finding.group)


async def _examine(
    config: Path | None, url: str | None, files: tuple[str, ...], seconds: float, *, pre: bool
) -> Findings:
    from reactor.workbench.doctor import rules_diagnosis as rule_checks
    from reactor.workbench.doctor import settings_diagnosis as settings_checks
    from reactor.workbench.doctor.finding import Finding

    settings, found = await settings_checks.findings(config, seconds)
    if settings is None:
        return [*found, *(Finding(group, "all", "skipped", UNREAD) for group in GROUPS[1:])]
    if files:
        settings = settings.model_copy(update={"rule_files": (*settings.rule_files, *files)})
    rules, said = await rule_checks.findings(settings, seconds)
    asked = await _ask(settings, url, rules, seconds, config, pre=pre)
    return [*found, *said, *asked]


async def _ask(
    settings: Settings, url: str | None, rules: Any, seconds: float, config: Path | None, *, pre: bool
) -> Findings:
    """Ask all that is not on this machine, side by side."""
    from reactor.cli.shared.doctor_bus import bus_findings, member_findings, suffix, unasked_members
    from reactor.workbench.doctor import alertmanager_diagnosis, disk_diagnosis, servers_diagnosis
    from reactor.workbench.doctor.finding import Finding, limited

    bus = settings.bus
    checked = bus_findings(bus, url, suffix(config, url), before_install=pre)
    looks = [
        limited("bus", "connection", checked, seconds), servers_diagnosis.findings(settings, rules.reading, seconds),
        alertmanager_diagnosis.findings(settings, rules.reading, seconds), disk_diagnosis.findings(bus, url, seconds),
    ]  # fmt: skip
    if not pre:
        looks.append(limited("members", "all", member_findings(bus, url, rules.digest), seconds))
    answers = await asyncio.gather(*looks)
    own = Finding("versions", "reactor", "ok", f"{installed('alert-reactor')} on Python {platform.python_version()}")
    found = [own, *(finding for one in answers for finding in one)]
    return [*found, *unasked_members("not before an install")] if pre else found


def _shown(found: Findings) -> str:
    lines: list[str] = []
    for group, findings in groupby(found, key=lambda one: one.group):
        lines.append(group)
        for one in findings:
            lines.append(f"  {one.status:<8} {visible(f'{one.name}: {one.detail}' if one.detail else one.name)}")
            if one.fix:
                lines.append(f"           fix: {visible(one.fix)}")
        lines.append("")
    counts = Counter(one.status for one in found)
    return "\n".join([*lines, ", ".join(f"{count} {status}" for status, count in counts.items())])
