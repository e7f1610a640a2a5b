"""Warnings of a Prometheus beside an answer: a remote that could not be read, a store that is away.

Such an answer may lack series, and its sums what they are of: it shows neither that a series has left nor that one is
there, so it counts as none. Warnings are counted, and each is logged once. What PromQL says about a query itself is no
more than that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import requests

from reactor.runtime import telemetry

TOLD_MAX = 100
"""Most different warnings that are remembered as logged."""
_CHARACTERS = 300
_WHOLE = ("PromQL info", "PromQL warning", "results truncated due to limit")
"""First words of warnings about the query. We ask for one series too many, and refuse what has it."""

log = logging.getLogger(__name__)


class PartialAnswer(Exception):
    """The server could not read all that the query is about."""


class Warnings:
    """A response hook of `requests`: raises PartialAnswer."""

    def __init__(self, name: str) -> None:
        """`name`: of the Prometheus in the settings."""
        self._name = name
        self._told = set[str]()

    def __call__(self, response: requests.Response, **_: Any) -> None:
        """Look at one answer. One that cannot be read is the caller's matter. Raises PartialAnswer."""
        told = any(word in response.content for word in (b'"warnings"', b'"isPartial"'))
        if response.status_code != requests.codes.ok or not told:
            return
        try:
            document: Any = response.json()
        except (ValueError, RecursionError):
            return
        if not isinstance(document, Mapping):
            return
        found = document.get("warnings")
        texts = [str(warning)[:_CHARACTERS] for warning in found] if isinstance(found, list) else []
        for text in texts:
            self._tell(text)
        if lacking := [text for text in texts if not text.startswith(_WHOLE)]:
            raise PartialAnswer(lacking[0])
        if document.get("isPartial") is True:  # VictoriaMetrics
            raise PartialAnswer("the server says so")

    def _tell(self, text: str) -> None:
        telemetry.prometheus_warnings.labels(self._name).inc()
        if text in self._told:
            return
        if len(self._told) >= TOLD_MAX:
            self._told.clear()
        self._told.add(text)
        log.warning("a query was answered with a warning", extra={"prometheus": self._name, "warning": text})
