"""Rule files on disk: found by globs, read as one snapshot, and checked against the settings."""

from __future__ import annotations

import glob
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reactor.rulefiles.unlisted import refuse_rule, refuse_source
from reactor.runtime.errors import SettingsError
from reactor.runtime.textfiles import text_of
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.zone.model import StepName, ZoneIsolation
from rules.loader import RuleSet, load_rules
from rules.rulefile.model import Rule
from rules.rulefile.sources import (
    AlertmanagerWebhook,
    ClusterProbe,
    EndpointsWatch,
    LeaseWatch,
    LoadedSource,
    NodeWatch,
    PrometheusQuery,
    WorkloadWatch,
)

if TYPE_CHECKING:
    from reactor.settings.model import Settings

log = logging.getLogger(__name__)
_HERE = "reactor/rulefiles/snapshot.py"


def find_rule_files(patterns: Iterable[str], *, tests: bool = True) -> list[Path]:
    """Give the files, sorted, each once. A folder means its `*.yaml` that are no tests. Raises SettingsError.

    `tests`: whether a glob means rule tests (`*_test.yaml`) too, which have their place beside their rule file.
    """
    found: dict[Path, None] = {}
    missing = []
    for pattern in patterns:
        path = Path(pattern)
        if path.is_dir():
            files = sorted(file for file in path.glob("*.y*ml") if not _is_test(file))
        elif path.is_file():
            files = [path]
        else:
            matched = [Path(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207 - patterns may be absolute
            files = [file for file in matched if tests or not _is_test(file)]
        if not files:
            missing.append(f"{pattern}: no such rule file")
        found |= dict.fromkeys(files)
    if missing:
        raise SettingsError("\n".join(missing))
    return list(found)


def _is_test(file: Path) -> bool:
    return file.stem.endswith("_test")


def read_rule_files(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Give each file's name and text. Raises SettingsError where one cannot be read."""
    for path in paths:
        try:
            yield str(path), text_of(path)
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise SettingsError(f"{path}:{line}: not UTF-8: byte 0x{error.object[error.start]:02x}") from error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rule files as they were when they were read. Two that are equal are of the same files."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and text."""
    unreadable: str = ""
    """Reason why some file could not be read; empty: all were read."""

    @classmethod
    def take(cls, settings: Settings) -> Snapshot:
        """Read the rule files that the settings name."""
        try:
            return cls(tuple(read_rule_files(find_rule_files(settings.rule_files, tests=False))))
        except SettingsError as error:
            return cls(unreadable=str(error))


def load_for(settings: Settings, snapshot: Snapshot | None = None) -> RuleSet:
    """Load the rule files that a process is to go by: they may ask for nothing that its settings do not have.

    Raises SettingsError, and InvalidFiles with every mistake of every file.
    """
    rules = load_alone(settings, snapshot)
    if wrong := sorted(set(_unknown(rules, settings))):
        raise SettingsError("\n".join(wrong))
    return rules


def with_removed(rules: RuleSet, kept: Iterable[Rule], settings: Settings) -> RuleSet:
    """Give the rules of the files, and those of the `kept` that are in no file any more, for their way back.

    One that asks for what the settings do not have any more is left out, and told.
    """
    fit, there = [], {rule.name for rule in rules.rules}
    for rule in kept:
        if rule.name in there:
            continue
        wrong = list(_unknown(RuleSet((rule,), places={rule.name: rule.name}), settings))
        if wrong:
            log.error("a rule that left the rule files cannot bring back what it did: %s", "; ".join(wrong))
        else:
            fit.append(rule)
    names = [rule.name for rule in fit]
    places = {**rules.places, **dict.fromkeys(names, "removed from the rule files")}
    return replace(rules, rules=(*rules.rules, *fit), places=places, removed=frozenset(names))


def load_alone(settings: Settings, snapshot: Snapshot | None = None) -> RuleSet:
    """Load the rule files for what needs no server. Raises SettingsError, InvalidFiles."""
    if not settings.rule_files:
        raise SettingsError("ruleFiles: none given; name at least one rule file, or pass --rules FILE")
    snapshot = snapshot or Snapshot.take(settings)
    if snapshot.unreadable:
        raise SettingsError(snapshot.unreadable)
    return load_rules(snapshot.files)


def digest(rules: RuleSet) -> str:
    """Give 12 hex digits that are the same wherever the same things are said, however they are written down."""
    said = (*rules.rules, *rules.sources, *rules.guards)
    text = json.dumps(sorted((type(one).__name__, one.model_dump_json()) for one in said))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _unknown(rules: RuleSet, settings: Settings) -> Iterator[str]:
    """Problems with names in rule files that the settings do not have."""
    known: Mapping[str, Iterable[str]] = {
        "clusters": settings.clusters, "prometheus": settings.prometheus, "notifiers": settings.notifiers,
        "loadBalancers": settings.load_balancers,
    }  # fmt: skip
    asked = [(rules.places.get(rule.name, rule.name), _asked_by_rule(rule, settings)) for rule in rules.rules]
    asked += [(f"source {source.name}", _asked_by_source(source)) for source in rules.sources]
    for where, asks in asked:
        for ask in asks:
            if ask.name not in known[ask.section]:
                yield _says(where, ask.key, ask.name, ask.section, known[ask.section])


class _ServerName(NamedTuple):
    key: str
    name: str
    section: str = "clusters"


def _asked_by_rule(rule: Rule, settings: Settings) -> Iterator[_ServerName]:
    """Clusters of a WorkloadFailover are none of it: more may be placed on than we reach, and the executor warns."""
    match rule:
        case TrafficFailover() if rule.route.in_cluster:
            yield _ServerName("route.cluster", rule.route.cluster)
        case TrafficFailover():
            yield _ServerName("route.name", rule.route.name or "", "loadBalancers")
        case ZoneIsolation():
            yield from _asked_by_zones(rule)
        case WorkloadFailover() | ClusterTaint():
            if rule.carrier == "Karmada":
                yield _ServerName("carrier Karmada, the settings' karmada.cluster", settings.karmada.cluster)
        case _:
            refuse_rule(rule, _HERE)
    for name in rule.notify:
        yield _ServerName("notify", name, "notifiers")


def _asked_by_zones(rule: ZoneIsolation) -> Iterator[_ServerName]:
    # Of a Shoot the reactor itself only shifts the traffic; for the rest it asks Gardener.
    if rule.shoot is None or StepName.SHIFT_TRAFFIC in rule.steps:
        yield _ServerName("cluster", rule.cluster_name)
    if rule.shoot is not None:
        yield _ServerName("shoot.cluster", rule.shoot.cluster)
    if rule.seed is not None:
        yield _ServerName("seed.cluster", rule.seed.cluster)
    if rule.verify is not None:
        yield _ServerName("verify.prometheus", rule.verify.prometheus, "prometheus")


def _asked_by_source(source: LoadedSource) -> Iterator[_ServerName]:
    match source:
        case ClusterProbe() | EndpointsWatch() | LeaseWatch() | NodeWatch() | WorkloadWatch():
            yield _ServerName("cluster", source.cluster)
        case PrometheusQuery():
            yield _ServerName("prometheus", source.prometheus, "prometheus")
        case AlertmanagerWebhook():
            yield from (
                []
                if source.confirm is None
                else [_ServerName("confirm.prometheus", source.confirm.prometheus, "prometheus")]
            )
        case _:
            refuse_source(source, _HERE, "cluster", "prometheus")


def _says(where: str, key: str, name: str, section: str, known: Iterable[str]) -> str:
    names = ", ".join(sorted(known)) or "nothing"
    return f"{where}: {key}: {name!r} is not in the settings; {section} has {names}"
