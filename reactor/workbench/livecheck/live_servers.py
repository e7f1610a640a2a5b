"""Servers that rule files name: by the settings, or by the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import aiohttp
import yaml
from pydantic import ValidationError

from bus.json_text import parsed
from reactor.clients.balancers.connected import LoadBalancers
from reactor.clients.credentials import proxy_of
from reactor.runtime.clock import Clock
from reactor.settings import model as settings_
from reactor.settings.server_settings import ClusterSettings, Endpoint
from reactor.workbench.livecheck import SETTINGS
from rules.rulefile.route_kinds import RouteKinds

ASK_SECONDS = 5.0
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(?=.)")
Name = str | None
"""Name of a server; None: it is used for every name that has no other."""


class BadWhere(ValueError):
    """The command line is wrong: says what to write."""


@dataclass(slots=True)
class Servers:
    """Servers that are asked, by their names in rule files."""

    clusters: dict[Name, ClusterSettings] = field(default_factory=dict)
    prometheus: dict[Name, Endpoint] = field(default_factory=dict)
    notifiers: Mapping[str, object] | None = None
    """Notifiers of the settings by name; None: no settings were given, so nothing is known of them."""
    load_balancers: LoadBalancers | None = None
    """The same of these."""
    route_kinds: RouteKinds = field(default_factory=dict)
    """Kinds of routes of the settings."""
    silent: dict[str, str] = field(default_factory=dict)
    """URLs that did not answer, and why: what they are is not known."""

    def cluster(self, name: str) -> ClusterSettings | None:
        """Give where the cluster of this name is."""
        return self.clusters.get(name, self.clusters.get(None))

    def endpoint(self, name: str) -> Endpoint | None:
        """Give where the Prometheus of this name is."""
        return self.prometheus.get(name, self.prometheus.get(None))


async def servers(words: Sequence[str], config: Path | None, folder: Path) -> Servers:
    """Read what `--against` was given. Each is `settings`, or `[NAME=]WHERE`: a URL, or a context of the kubeconfig.

    `folder`: for the kubeconfig that a URL is written into. Raises BadWhere, SettingsError.
    """
    found = Servers()
    if SETTINGS in words:
        if config is None:
            raise BadWhere("--against without a URL asks the servers of the settings: say which, with --config FILE")
        given = settings_.load(config)
        balancers = LoadBalancers(given.load_balancers, Clock(), aws_proxy=proxy_of(given.aws))
        found = Servers(
            dict(given.clusters.items()), dict(given.prometheus.items()), given.notifiers, balancers,
            given.described_route_kinds,
        )  # fmt: skip
    for word in words:
        if word == SETTINGS:
            continue
        name, where = (match[1], word[match.end() :]) if (match := _NAMED.match(word)) else (None, word)
        if not where.startswith(("http://", "https://")):
            found.clusters[name] = ClusterSettings(context=where)
        elif (what := await _what(where)) == "Kubernetes":
            found.clusters[name] = _behind(where, folder / f"kubeconfig-{len(found.clusters)}")
        elif what == "Prometheus":
            found.prometheus[name] = _endpoint(where)
        else:
            found.silent[where] = what
    return found


async def _what(url: str) -> Literal["Kubernetes", "Prometheus"] | str:
    """Tell by /version what answers: Kubernetes gives its gitVersion, or a Status where it refuses us.

    Gives the reason where nothing does.
    """
    timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"{url.rstrip('/')}/version") as got:
            said = parsed(await got.read())
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return str(error) or type(error).__name__
    except ValueError:
        return "Prometheus"
    is_kubernetes = isinstance(said, dict) and ("gitVersion" in said or said.get("kind") == "Status")
    return "Kubernetes" if is_kubernetes else "Prometheus"


def _behind(url: str, file: Path) -> ClusterSettings:
    """A URL has no credentials: this is for `kubectl proxy`, and for servers that ask for none."""
    entry = {"cluster": "url", "user": "url"}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "url", "contexts": [{"name": "url", "context": entry}],
        "clusters": [{"name": "url", "cluster": {"server": url.rstrip("/")}}], "users": [{"name": "url", "user": {}}],
    }  # fmt: skip
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return ClusterSettings(kubeconfig=file)


def _endpoint(url: str) -> Endpoint:
    try:
        endpoint = Endpoint.model_validate({"url": url})
    except ValidationError as error:
        raise BadWhere(f"--against {url}: {error.errors()[0]['msg']}") from error
    if endpoint.url.username or endpoint.url.password:
        raise BadWhere("--against: a password on a command line is seen by others: use --config")
    return endpoint
