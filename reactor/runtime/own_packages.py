"""Checks that `bus`, `rules` and `reactor` are ours.

Other projects install top-level modules of these names. Importing theirs would fail somewhere deep, and confusingly; so
it is checked first.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from reactor.runtime.errors import SettingsError

PACKAGES = ("bus", "rules", "reactor")


def check() -> None:
    """Raise SettingsError unless the three packages are in one folder."""
    homes = {name: _home(name) for name in PACKAGES}
    ours = homes["reactor"]
    if strangers := [f"{name} comes from {home}" for name, home in homes.items() if home != ours]:
        raise SettingsError(
            f"{', '.join(strangers)}, not from {ours}: another project installs a module of this name; "
            "give alert-reactor an environment of its own (uv tool install, or a new venv)"
        )


def _home(name: str) -> Path | None:
    spec = find_spec(name)
    return Path(spec.origin).resolve().parents[1] if spec is not None and spec.origin is not None else None
