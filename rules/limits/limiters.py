"""Guards that apply to a rule, and the limiters that keep those which several groups share.

A limiter's name is `@` and the guard's: `rule.<rule>` for a rule's own guards, `guard.<name>` for those of a file,
`evictions` and `clusters` for the defaults, `quorum.<source>`. Rules in DryRun have limiters of their own, with
`~dry-run`: a rehearsal takes no grant from a rule that acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bus.messages import Mode
from rules.core.index import Index, pattern_of
from rules.limits.limiter import LimiterRule
from rules.rulefile.guards import FileGuard, Guards
from rules.rulefile.model import Rule
from rules.rulefile.targets import matches

EVICTIONS = Guards(rate_per_second=0.5)
"""For all rules of kinds that are limited by default, together, where nothing else limits their rate (Karmada's
resource-eviction-rate)."""
CLUSTERS = Guards(max_unhealthy="40%", rounding="Down", peers="cluster/*")
"""For each rule of such a kind, where nothing else counts peers."""
CLUSTERS_MIN = 3
"""With fewer clusters, one bad one is already too many of them."""
REHEARSED = "~dry-run"
"""Ends the names of the guards that rules in DryRun ask."""


@dataclass(frozen=True, slots=True)
class RuleGuards:
    """All that limits one rule."""

    own: tuple[Guards, ...]
    """Guards whose windows, cooldown and approval each group of the rule checks by itself."""
    shared: Mapping[str, Guards]
    """The guards that its groups ask, by name, in the order in which they ask them, the same for all rules: first those
    that only count peers, since they give nothing away, then slots, and last tokens, which are spent when given."""


class GuardsByRule:
    """The guards of rule files, by the names of the rules that they mean."""

    def __init__(self, guards: Iterable[FileGuard]) -> None:
        self._guards = list(guards)
        self._index = Index(
            (pattern_of(pattern), number) for number, guard in enumerate(self._guards) for pattern in guard.rules
        )
        self._known: dict[str, tuple[FileGuard, ...]] = {}

    def of(self, name: str) -> tuple[FileGuard, ...]:
        """Give the guards that mean the rule of this name, in the order of the files."""
        if name not in self._known:
            found = [self._guards[number] for number in self._index.find(name.split("/"))]
            self._known[name] = tuple(one for one in found if any(matches(pattern, name) for pattern in one.rules))
        return self._known[name]


def limits_of(rule: Rule, file_guards: Iterable[FileGuard] = ()) -> RuleGuards:
    """Give the limits of a rule: its own, those of its file that mean it, and the defaults of its kind."""
    mine = [guard for guard in file_guards if any(matches(pattern, rule.name) for pattern in guard.rules)]
    own: tuple[Guards, ...] = (*([rule.guards] if rule.guards is not None else []), *mine)
    shared: dict[str, Guards] = {f"guard.{guard.label}": guard for guard in mine}
    if rule.guards is not None:
        shared[f"rule.{rule.name}"] = rule.guards
    if rule.limited_by_default:
        if not any(one.max_unhealthy is not None or one.min_healthy is not None for one in own):
            shared["clusters"] = CLUSTERS
        if not any(one.rate_per_second is not None for one in own):
            shared["evictions"] = EVICTIONS
    suffix = REHEARSED if rule.mode is Mode.DRY_RUN else ""
    in_order = sorted(shared.items(), key=lambda one: (spends(one[1]), holds_slots(one[1]), one[0]))
    return RuleGuards(own, {f"{name}{suffix}": guards for name, guards in in_order if guards.shared})


def limiters(rules: Iterable[Rule], file_guards: Sequence[FileGuard] = ()) -> list[LimiterRule]:
    """Give the limits that several groups of these rules share, each as a rule of an internal kind."""
    asked: dict[str, tuple[Guards, list[Rule]]] = {}
    by_rule = GuardsByRule(file_guards)
    for rule in rules:
        if rule.mode is Mode.OFF:
            continue
        for name, guards in limits_of(rule, by_rule.of(rule.name)).shared.items():
            asked.setdefault(name, (guards, []))[1].append(rule)
    return [_budget(name, guards, who) for name, (guards, who) in asked.items()]


def _budget(name: str, guards: Guards, rules: Sequence[Rule]) -> LimiterRule:
    peers: list[str] = []
    if guards.counts_peers:
        peers = [guards.peers] if guards.peers is not None else [peer for rule in rules for peer in rule.default_peers]
        if not peers:  # a mistake in the code of a kind: it would act without a limit
            raise NotImplementedError(
                f"default_peers of {type(rules[0]).__name__} is empty: its guards would count no target"
            )
    return LimiterRule(
        name=f"@{name}", guards=guards, guarded=tuple(rule.name for rule in rules), peers=tuple(dict.fromkeys(peers)),
        signals=rules[0].signals if name.startswith("rule.") else None,
        at_least=CLUSTERS_MIN if guards is CLUSTERS else 0,
    )  # fmt: skip


def holds_slots(guards: Guards) -> bool:
    """True if the guard limits the number of groups that act at one time."""
    return guards.max_concurrent is not None


def spends(guards: Guards) -> bool:
    """True if the guard gives out tokens."""
    return guards.rate_per_second is not None or guards.disruption is not None
