"""Rules that an alert would reach, and the reasons why it does not reach the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from bus.messages import Health, Observation
from rules.engine.routing import Routing
from rules.loader import RuleSet
from rules.rulefile.matchers import Matchers
from rules.rulefile.model import Rule
from rules.rulefile.sources import AlertmanagerWebhook
from rules.rulefile.targets import MissingLabel, fill


@dataclass(frozen=True, slots=True)
class AlertReaction:
    """Answer of a source or a rule to an alert: reached or not, and why."""

    name: str
    reaches: bool
    why: str


@dataclass(frozen=True, slots=True)
class AlertReach:
    """Target that a source derives from an alert, and the rules that receive it."""

    source: AlertReaction
    target: str | None = None
    """None: the source names no target."""
    rules: tuple[AlertReaction, ...] = ()


def reach(labels: Mapping[str, str], rules: RuleSet, at: datetime) -> Iterator[AlertReach]:
    """Say, for each Alertmanager source and each rule, whether an alert with these labels would reach it, and why not.

    `at`: any moment; what would be routed does not depend on it.
    """
    routing = Routing.of(rules)
    for source in rules.sources:
        if not isinstance(source, AlertmanagerWebhook):
            continue
        if refusal := _refusal(source, labels):
            yield AlertReach(AlertReaction(source.name, reaches=False, why=refusal))
            continue
        try:
            target = fill(source.target, labels)
        except MissingLabel as error:
            yield AlertReach(
                AlertReaction(source.name, reaches=False, why=f"matches, and cannot name its target: {error}")
            )
            continue
        said = Observation(
            target=target, status=Health.UNHEALTHY, signal=source.says, observed_at=at, labels=dict(labels)
        )
        addressed = {name for name, _ in routing.addresses(said)}
        yield AlertReach(
            AlertReaction(source.name, reaches=True, why=f"says {target} is Unhealthy, as signal {source.says}"),
            target,
            tuple(_answer(rule, said, addressed=rule.name in addressed) for rule in rules.rules),
        )  # fmt: skip


def _refusal(source: AlertmanagerWebhook, labels: Mapping[str, str]) -> str:
    texts = (source.matchers,) if isinstance(source.matchers, str) else source.matchers
    missing = [one for text in texts for one in Matchers.parse(text).all if not one.matches(labels)]
    if not missing:
        return ""
    asks = ", ".join(f'{one.label}{one.operator}"{one.value}"' for one in missing)
    has = ", ".join(f'{one.label}="{labels.get(one.label, "")}"' for one in missing)
    return f"asks for {asks}, and the alert has {has}"


def _answer(rule: Rule, said: Observation, *, addressed: bool) -> AlertReaction:
    if not addressed:
        return AlertReaction(rule.name, reaches=False, why=f"{said.target} is none of its targets")
    if rule.signals is not None and said.signal not in rule.signals:
        return AlertReaction(rule.name, reaches=False, why=f"counts only the signals {', '.join(rule.signals)}")
    return AlertReaction(rule.name, reaches=True, why=f"after {rule.toleration_seconds:g} s, mode {rule.mode}")


def lines(heard: Iterable[AlertReach]) -> Iterator[str]:
    """Tell it to people."""
    for one in heard:
        yield f"source {_told(one.source)}"
        yield from (f"  rule {_told(rule)}" for rule in one.rules)


def _told(answer: AlertReaction) -> str:
    return f"{answer.name}: {'yes' if answer.reaches else 'no'}: {answer.why}"
