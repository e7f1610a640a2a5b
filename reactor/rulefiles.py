"""Rule files on disk: found by globs, read as one snapshot, and checked against the settings."""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reactor.errors import SettingsError
from reactor.settings import Settings
from rules.language.loader import LoadedSource, RuleSet, load
from rules.language.model import TrafficFailover
from rules.language.sources import AlertmanagerWebhook, EndpointsWatch, PrometheusQuery


def find(patterns: Iterable[str]) -> list[Path]:
    """Give the files, sorted, each once. A folder means its `*.yaml` that are no tests. Raises SettingsError."""
    found: dict[Path, None] = {}
    missing = []
    for pattern in patterns:
        path = Path(pattern)
        if path.is_dir():
            files = sorted(file for file in path.glob("*.y*ml") if not file.stem.endswith("_test"))
        else:
            files = [path] if path.is_file() else [Path(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207 - patterns may be absolute
        if not files:
            missing.append(f"{pattern}: no such rule file")
        found |= dict.fromkeys(files)
    if missing:
        raise SettingsError("\n".join(missing))
    return list(found)


def read(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Give each file's name and text. Raises SettingsError where one cannot be read."""
    for path in paths:
        try:
            yield str(path), path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: {error}") from error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rule files as they stood when they were looked at. Two that are equal are of the same files."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and text."""
    unreadable: str = ""
    """Why they could not all be read; empty: they could."""

    @classmethod
    def take(cls, settings: Settings) -> Snapshot:
        """Read the rule files that the settings name."""
        try:
            return cls(tuple(read(find(settings.rule_files))))
        except SettingsError as error:
            return cls(unreadable=str(error))


def load_for(settings: Settings, snapshot: Snapshot | None = None) -> RuleSet:
    """Load the rule files that the settings name, and check what they ask of the settings.

    Raises SettingsError, and InvalidFiles with every mistake of every file.
    """
    rules = load_alone(settings, snapshot)
    if wrong := sorted(set(_unknown(rules, settings))):
        raise SettingsError("\n".join(wrong))
    return rules


def load_alone(settings: Settings, snapshot: Snapshot | None = None) -> RuleSet:
    """Load the rule files for what needs no server. Raises SettingsError, InvalidFiles."""
    if not settings.rule_files:
        raise SettingsError("ruleFiles: none given; name at least one rule file, or pass --rules FILE")
    snapshot = snapshot or Snapshot.take(settings)
    if snapshot.unreadable:
        raise SettingsError(snapshot.unreadable)
    return load(snapshot.files)


def digest(rules: RuleSet) -> str:
    """Give 12 hex digits that are the same wherever the same things are said, however they are written down."""
    said = (*rules.rules, *rules.sources, *rules.guards)
    text = json.dumps(sorted((type(one).__name__, one.model_dump_json()) for one in said))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _unknown(rules: RuleSet, settings: Settings) -> Iterator[str]:
    """What rule files name and the settings do not have."""
    for rule in rules.rules:
        where = rules.places.get(rule.name, rule.name)
        if isinstance(rule, TrafficFailover) and rule.route.cluster not in settings.clusters:
            yield _says(where, "route.cluster", rule.route.cluster, "clusters", settings.clusters)
        for name in rule.notify:
            if name not in settings.notifiers:
                yield _says(where, "notify", name, "notifiers", settings.notifiers)
    for source in rules.sources:
        for key, name, section, known in _asks(source, settings):
            if name not in known:
                yield _says(f"source {source.name}", key, name, section, known)


def _asks(source: LoadedSource, settings: Settings) -> Iterator[tuple[str, str, str, Iterable[str]]]:
    if isinstance(source, EndpointsWatch):
        yield "cluster", source.cluster, "clusters", settings.clusters
    if isinstance(source, PrometheusQuery):
        yield "prometheus", source.prometheus, "prometheus", settings.prometheus
    if isinstance(source, AlertmanagerWebhook) and source.confirm is not None:
        yield "confirm.prometheus", source.confirm.prometheus, "prometheus", settings.prometheus


def _says(where: str, key: str, name: str, section: str, known: Iterable[str]) -> str:
    names = ", ".join(sorted(known)) or "nothing"
    return f"{where}: {key}: {name!r} is not in the settings; {section} has {names}"
