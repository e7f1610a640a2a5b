"""Pages of `reactor backtest` that this page serves and links to, and the command that writes one.

They are files in a folder that the settings name. Each is served unchanged and sandboxed: its script has no cookie and
reaches no API, and it runs only if its hash is the one that the file itself names.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from aiohttp import web

from reactor.settings.model import Settings
from reactor.views.rows import Row
from rules.kinds.traffic.model import TrafficFailover
from rules.loader import RuleSet
from rules.rehearsal.backtest.playable import needs_no_inventory
from rules.rulefile.sources import AlertmanagerWebhook, PrometheusQuery

HEAD_BYTES = 262_144
"""Most bytes of a file that are read for its head."""
PAGES_MAX = 200
"""The newest ones are linked to; all are served."""
LINKS_MAX = 5
"""Most links of one rule."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RULES = re.compile(r'<meta name="reactor-rules" content="([^"]*)">')
_TITLE = re.compile(r"<title>([^<]*)</title>")
_SCRIPT = re.compile(r"script-src ('sha256-[A-Za-z0-9+/]{43}=')")


@dataclass(frozen=True, slots=True)
class BacktestHead:
    """Head of one file."""

    name: str
    """File name without `.html`."""
    title: str
    rules: tuple[str, ...]
    """Names of the rules in the order of the page: number N has the heading `rule-N`."""
    script: str
    """The hash of its script, as a policy names it; `'none'`: it names no script."""


class BacktestFolder:
    """The folder, and the command line that adds to it."""

    def __init__(self, folder: Path | None, options: Iterable[str] = ()) -> None:
        """`folder`: None for none. `options`: what `reactor backtest` needs to read the rules and to ask Prometheus."""
        self._folder = folder
        self._options = tuple(options)
        self._known: dict[tuple[Path, int, int], BacktestHead | None] = {}

    @classmethod
    def of(cls, settings: Settings) -> BacktestFolder:
        """Take the folder, the rule files and the settings file of a process."""
        options: list[str] = []
        if settings.file is not None and settings.prometheus and settings.rule_files:
            for pattern in settings.rule_files:
                options += ["--rules", str(Path(pattern).absolute())]
            options += ["--config", str(settings.file.absolute())]
        return cls(settings.web.backtests, options)

    def routes(self) -> list[web.RouteDef]:
        """Give the routes."""
        return [web.get(r"/backtests/{name}.html", self._page)]

    def heads(self) -> list[BacktestHead]:
        """Give what the files are about, the newest first. Reads the disk."""
        if self._folder is None:
            return []
        found: list[tuple[Path, int, int]] = []
        for path in self._folder.glob("*.html"):
            with suppress(OSError):  # it just went, or its link leads nowhere
                found.append((path, (stat := path.stat()).st_mtime_ns, stat.st_size))
        newest = sorted(found, key=lambda one: -one[1])[:PAGES_MAX]
        self._known = {key: self._known[key] if key in self._known else self._head(key[0]) for key in newest}
        return [head for head in self._known.values() if head is not None]

    def _head(self, path: Path) -> BacktestHead | None:
        """Head of a file; None: it lies elsewhere, or cannot be read."""
        if (real := self._real(path.stem)) is None:
            return None
        try:
            with real.open("rb") as file:
                text = file.read(HEAD_BYTES).decode("utf-8", "replace")
            rules = json.loads(unescape(found[1])) if (found := _RULES.search(text)) else []
        except (OSError, ValueError):
            return None
        title = found[1] if (found := _TITLE.search(text)) else path.stem
        script = found[1] if (found := _SCRIPT.search(unescape(text))) else "'none'"
        names = tuple(map(str, rules)) if isinstance(rules, list) else ()
        return BacktestHead(path.stem, unescape(title), names, script)

    def _real(self, name: str) -> Path | None:
        """Give the regular file of a name where it lies in the folder, links followed; else None."""
        if self._folder is None or not _NAME.fullmatch(name):
            return None
        try:
            real = (self._folder / f"{name}.html").resolve(strict=True)
            return real if real.is_relative_to(self._folder.resolve()) and real.is_file() else None
        except (OSError, RuntimeError):
            return None

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        real, head = await asyncio.to_thread(lambda: (self._real(name), self._head(Path(f"{name}.html"))))
        if real is None or head is None:
            raise web.HTTPNotFound(text="there is no such backtest")
        policy = (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src {head.script}; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
        )
        headers = {"Content-Security-Policy": policy, "Content-Type": "text/html; charset=utf-8"}
        return web.FileResponse(real, headers=headers)

    def shown(self, rule: str, heads: Iterable[BacktestHead], rules: RuleSet) -> Row:
        """Give the links to a rule's backtests, and the command that writes one; empty where none can be run."""
        links = [
            {"path": f"/backtests/{head.name}.html#rule-{head.rules.index(rule)}", "title": head.title}
            for head in heads if rule in head.rules
        ]  # fmt: skip
        return {"backtests": links[:LINKS_MAX], "backtestCommand": self._command(rule, rules)}

    def _command(self, name: str, rules: RuleSet) -> str:
        rule = next((one for one in rules.rules if one.name == name), None)
        is_played = rule is not None and (isinstance(rule, TrafficFailover) or needs_no_inventory(rule))
        has_past = any(isinstance(source, PrometheusQuery | AlertmanagerWebhook) for source in rules.sources)
        if not (self._options and is_played and has_past):
            return ""
        file = self._folder.absolute() / "backtest.html" if self._folder is not None else "backtest.html"
        return shlex.join(["reactor", "backtest", *self._options, "--from", "7d", "--html", str(file)])
