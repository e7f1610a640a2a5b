"""Changed rule files are taken while the process runs; files that cannot be used change nothing, and are told of.

Contents are compared, not times: a ConfigMap's files change by a symlink that is swapped, an editor's by a rename. A
change is judged once two looks found the same, so that a file is not read while it is being written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from bus.errors import BusError
from bus.port import Store
from reactor.decide.kept_rules import kept_rules
from reactor.rulefiles.snapshot import Snapshot, digest, load_for, with_removed
from reactor.runtime import telemetry
from reactor.runtime.errors import ReactorError
from reactor.runtime.threads import FILES
from reactor.settings.model import Settings
from rules.core.errors import InvalidFiles, RulesError
from rules.loader import RuleSet
from rules.rulefile.model import Rule

log = logging.getLogger(__name__)

OTHERS_LOOKS = 15
"""Looks at the files after which the rules that other processes have removed, and have to undo, are read again."""
LOOK_SECONDS = 2.0
"""Seconds between two looks at the files. A ConfigMap takes about a minute to reach a Pod, so this hardly adds to
it."""

Switch = Callable[[RuleSet], Awaitable[None]]
"""Uses other rules from now on. Raises ReactorError where it cannot: then it uses those of before."""


class RuleFiles:
    """The rule files of this process: what they say that is in force, and what is wrong with what they say now."""

    def __init__(self, settings: Settings) -> None:
        """Raises SettingsError, InvalidFiles."""
        self._settings = settings
        self._seen = self._judged = Snapshot.take(settings)
        self.rules = load_for(settings, self._judged)
        self.digest = digest(self.rules)
        self._store: Store | None = None
        self._kept: Sequence[Rule] = ()
        """Rules whose changes in the world still exist, as they count where they are in no file."""
        self.problems: tuple[str, ...] = ()
        """Reasons why the files on the disk are not in force; empty: they are."""
        self._asked = asyncio.Event()
        self._warn()

    async def remember(self, store: Store) -> None:
        """Use, from now on, also rules that left the files while what they changed still exists. Raises Unavailable."""
        self._store = store
        self._kept = await kept_rules(store)
        self.rules = with_removed(self.rules, self._kept, self._settings)
        self.digest = digest(self.rules)

    def look_now(self) -> None:
        """Judge the files as they are now, without a second look: the caller says that they are complete."""
        self._asked.set()

    async def watch(self, switch: Switch, told: Callable[[], None]) -> None:
        """Look until cancelled. `told`: called when `digest` or `problems` may have changed."""
        looks = 0
        while True:
            asked = await self._wait()
            looks += 1
            seen = await FILES.run(partial(Snapshot.take, self._settings))
            is_unchanged, self._seen = seen == self._seen, seen
            changed = asked or (is_unchanged and seen != self._judged)
            if not changed and not self.rules.removed and looks % OTHERS_LOOKS:
                continue
            try:
                kept = await kept_rules(self._store) if self._store is not None else ()
            except BusError as error:
                log.info("the rule files are looked at again when the bus answers: %s", error)
                continue
            changed = changed or self._removed(kept) != self._removed(self._kept)
            self._kept = kept
            if changed:
                self._judged = seen
                await self._judge(seen, switch)
                told()

    def _removed(self, kept: Iterable[Rule]) -> list[Rule]:
        there = {rule.name for rule in self.rules.rules} - self.rules.removed
        return [rule for rule in kept if rule.name not in there]

    async def _wait(self) -> bool:
        """Wait for the next look; True where one was asked for."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True

    async def _judge(self, seen: Snapshot, switch: Switch) -> None:
        try:
            rules = await FILES.run(partial(load_for, self._settings, seen))
            rules = with_removed(rules, self._kept, self._settings)
            if changed := digest(rules) != self.digest:
                await switch(rules)
        except InvalidFiles as error:
            self._refuse("invalid", [str(problem) for problem in error.problems if problem.severity == "error"])
        except RulesError as error:
            self._refuse("invalid", str(error).splitlines())
        except ReactorError as error:
            self._refuse("failed", str(error).splitlines())
        else:
            before, self.rules, self.digest, self.problems = self.rules, rules, digest(rules), ()
            self._count("changed" if changed else "unchanged")
            if changed:
                log.info("the rules have changed", extra={"rules": self.digest, **_difference(before, rules)})
                self._warn()

    def _refuse(self, result: str, problems: list[str]) -> None:
        self.problems = tuple(problems)
        self._count(result)
        for problem in problems:
            log.error("the rules of before go on, the files cannot be used: %s", problem)

    def _count(self, result: str) -> None:
        telemetry.rule_reloads.labels(result).inc()
        telemetry.rule_files_invalid.set(bool(self.problems))

    def _warn(self) -> None:
        for warning in self.rules.warnings:
            log.warning("%s", warning)


def _difference(before: RuleSet, after: RuleSet) -> dict[str, str]:
    """Names of the rules that were added, removed and changed, comma-separated, for the log."""
    old, new = ({rule.name: rule for rule in rules.rules} for rules in (before, after))
    named = {
        "added": new.keys() - old.keys(),
        "removed": old.keys() - new.keys(),
        "changed": {name for name in old.keys() & new.keys() if old[name] != new[name]},
    }
    return {what: ",".join(sorted(names)) for what, names in named.items() if names}
