"""Checks that each Alertmanager answers, and has a webhook that posts to this reactor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import yaml

from reactor.clients.alertmanager_api import Alertmanager
from reactor.runtime.errors import ReactorError
from reactor.settings.model import Settings
from reactor.settings.server_settings import Endpoint
from reactor.workbench.doctor.finding import Finding, Findings, limited
from rules.loader import LoadedParts
from rules.rulefile.sources import AlertmanagerWebhook

GROUP = "alertmanager"
PATH = "/v1/alerts/"
"""Path of our webhook; the name of the source follows."""
HIDDEN = "<secret>"
"""Text that newer Alertmanagers show in place of a URL."""
FIX = "add a receiver with webhook_configs and a route to it: docs/how-to/wire-alertmanager.md"


async def findings(settings: Settings, reading: LoadedParts, seconds: float) -> Findings:
    """Ask all Alertmanagers of the settings side by side."""
    if not settings.alertmanager:
        return [Finding(GROUP, "all", "skipped", "the settings have no alertmanager")]
    sources = [one.name for one, _, _ in reading.sources if isinstance(one, AlertmanagerWebhook)]
    named = settings.alertmanager.items()
    answers = await asyncio.gather(*(limited(GROUP, name, _ask(name, one, sources), seconds) for name, one in named))
    return [finding for one in answers for finding in one]


async def _ask(name: str, endpoint: Endpoint, sources: Sequence[str]) -> Findings:
    client = Alertmanager(name, endpoint)
    try:
        text = await client.configuration()
    except ReactorError as error:
        fix = f"set alertmanager.{name} to an address and credentials that it answers"
        return [Finding(GROUP, name, "failed", str(error), fix)]
    finally:
        await client.close()
    return [Finding(GROUP, name, "ok", "answers"), *judged(name, text, sources)]


def judged(name: str, text: str, sources: Sequence[str]) -> Findings:
    """Look for the way to each of our sources in a configuration of Alertmanager."""
    check = f"{name} route"
    if not sources:
        return [Finding(GROUP, check, "skipped", "no rule file that was read has a source of kind AlertmanagerWebhook")]
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())
        return [Finding(GROUP, check, "skipped", f"its configuration cannot be read: {where}")]
    urls = list(_routed_urls(config))
    known = {url.rstrip("/") for url in urls if url != HIDDEN}
    return [_route(check, source, known, hidden=HIDDEN in urls) for source in sources]


def _route(check: str, source: str, known: set[str], *, hidden: bool) -> Finding:
    ways = sorted(url for url in known if url.endswith(f"{PATH}{source}"))
    if ways:
        return Finding(GROUP, check, "ok", f"source {source}: a route leads to {', '.join(ways)}")
    if hidden:
        detail = f"source {source}: Alertmanager hides the URLs of its webhooks: send an alert, and see if it arrives"
        return Finding(GROUP, check, "skipped", detail)
    return Finding(GROUP, check, "failed", f"source {source}: no route leads to a webhook …{PATH}{source}", FIX)


def _routed_urls(config: object) -> Iterator[str]:
    """Give the URLs of the webhooks that a route uses."""
    used = set(_receivers(_of(config, "route")))
    for receiver in _list(_of(config, "receivers")):
        if _of(receiver, "name") in used:
            for webhook in _list(_of(receiver, "webhook_configs")):
                yield str(_of(webhook, "url") or HIDDEN)  # without one there is a url_file


def _receivers(route: object) -> Iterator[object]:
    yield _of(route, "receiver")
    for child in _list(_of(route, "routes")):
        yield from _receivers(child)


def _of(entry: object, key: str) -> object:
    return entry.get(key) if isinstance(entry, dict) else None


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []
