"""Checks that the settings can be used."""

from __future__ import annotations

from pathlib import Path

from reactor.runtime.errors import SettingsError
from reactor.runtime.threads import FILES
from reactor.settings import model as settings_
from reactor.settings.model import Settings
from reactor.workbench.doctor.finding import Finding, Findings, limited

GROUP = "settings"
FIX = "correct the settings; docs/how-to/run-in-production.md has an example, reactor schema settings has every key"


async def findings(config: Path | None, seconds: float) -> tuple[Settings | None, Findings]:
    """Load the settings. None: they cannot be used."""
    loaded: list[Settings] = []

    async def look() -> Findings:
        try:
            loaded.append(await FILES.run(lambda: settings_.load(config)))
        except SettingsError as error:
            return [Finding(GROUP, "load", "failed", line, FIX) for line in str(error).splitlines()]
        where = f"from {config} and the environment" if config else "no settings file: defaults and the environment"
        return [Finding(GROUP, "load", "ok", where)]

    found = await limited(GROUP, "load", look(), seconds)
    return (loaded[0] if loaded else None), found
