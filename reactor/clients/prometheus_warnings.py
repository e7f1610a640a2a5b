"""What a Prometheus warns of beside an answer: a remote that could not be read, a store that is away.

The answer counts all the same, and may lack series; so the warnings are counted, and each is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import requests

from reactor.runtime import telemetry

TOLD_MAX = 100
"""So many different ones are remembered as told."""
_CHARACTERS = 300

log = logging.getLogger(__name__)


class Warnings:
    """A response hook of `requests`."""

    def __init__(self, name: str) -> None:
        """`name`: of the Prometheus in the settings."""
        self._name = name
        self._told = set[str]()

    def __call__(self, response: requests.Response, **_: Any) -> None:
        """Look at one answer. One that cannot be read is the caller's matter."""
        if response.status_code != requests.codes.ok or b'"warnings"' not in response.content:
            return
        try:
            document: Any = response.json()
        except (ValueError, RecursionError):
            return
        found = document.get("warnings") if isinstance(document, Mapping) else None
        for warning in found if isinstance(found, list) else ():
            telemetry.prometheus_warnings.labels(self._name).inc()
            text = str(warning)[:_CHARACTERS]
            if text in self._told:
                continue
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told.add(text)
            log.warning("a query was answered with a warning", extra={"prometheus": self._name, "warning": text})
