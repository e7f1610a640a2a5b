"""Rehearsal: rule tests and simulation, on the same decision function as the live service."""

import rules.catalog as _catalog  # noqa: F401 - it hands the kinds to the engine
