"""Versions of installed distributions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed(distribution: str) -> str:
    """Give the version of a distribution, or that it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
