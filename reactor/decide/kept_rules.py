"""The text of each rule whose changes still exist, such as an isolated zone, kept beside its group.

Deciders write it before the group that has to be brought back, and delete it after the group that is back. So every
process can use a rule that has left the rule files, for the way back alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pydantic import TypeAdapter, ValidationError

from bus import subjects
from bus.port import KeyValueEntry, Store
from bus.topology import GROUPS
from reactor.runtime import telemetry
from rules.catalog import AnyRule, kind_of
from rules.engine.groups import GroupStore
from rules.engine.subscriptions import RuleObject
from rules.rulefile.model import Rule

log = logging.getLogger(__name__)

_RULE: TypeAdapter[Rule] = TypeAdapter(AnyRule)


class KeptRules:
    """Stored rules of one partition, as its owner writes them."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._number = number
        self._texts: dict[str, bytes] = {}
        """Stored JSON of each rule by its key."""

    def loaded(self, entry: KeyValueEntry) -> bool:
        """Take note of a stored text; False: the entry is something else."""
        if not entry.key.startswith(f"{self._number}.rule."):
            return False
        self._texts[entry.key] = entry.value
        return True

    async def before(self, group_store: GroupStore, keys: Iterable[RuleObject]) -> None:
        """Keep what these groups will need, before they are stored. Raises Unavailable."""
        for rule in self._needed(group_store, keys):
            key, text = self._key(rule.name), rule.model_dump_json(by_alias=True, exclude_unset=True).encode()
            if self._texts.get(key) != text:
                await self._store.put(key, text, revision=None)
                self._texts[key] = text

    async def tidy(self, group_store: GroupStore) -> None:
        """Forget the rules that are known here and have nothing left to bring back. Raises Unavailable."""
        if not self._texts:
            return
        standing = {self._key(rule) for rule, object_ in group_store.groups if _is_kept(group_store, (rule, object_))}
        known = {self._key(rule) for rule in group_store.rules}
        for key in [key for key in self._texts if key in known and key not in standing]:
            await self._store.delete(key, revision=None)
            del self._texts[key]

    def _needed(self, group_store: GroupStore, keys: Iterable[RuleObject]) -> Iterable[Rule]:
        for key in keys:
            if not _is_kept(group_store, key):
                continue
            rule = group_store.rules[key[0]]
            left = kind_of(rule).way_back_only
            if left is not None and left(rule) != rule:  # else it is what is left: the whole text is stored already
                yield rule

    def _key(self, rule: str) -> str:
        return subjects.kept_rule(self._number, rule)


def _is_kept(group_store: GroupStore, key: RuleObject) -> bool:
    rule, group = group_store.rules.get(key[0]), group_store.groups.get(key)
    return rule is not None and group is not None and kind_of(rule).keeps(group)


async def kept_rules(store: Store) -> Sequence[Rule]:
    """Give all rules whose changes still exist, by name, each as it counts where it is in no file. Raises
    Unavailable."""
    out: list[Rule] = []
    for entry in await store.scan(subjects.kept_rule("*", "*")):
        try:
            rule = _RULE.validate_json(entry.value)
        except ValidationError as error:
            telemetry.quarantined.labels(GROUPS.name).inc()
            log.error("the kept rule %s cannot be read: %s", entry.key, error)  # noqa: TRY400 - no fault of this code
            continue
        if (left := kind_of(rule).way_back_only) is not None:
            out.append(left(rule))
    return sorted(out, key=lambda rule: rule.name)
