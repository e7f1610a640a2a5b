"""Servers of kinds: after adding a kind that names a server, the places that must say what it needs of that server.

By the examples of docs/examples/keys, which have every kind: `reactor rbac` prints the permissions that they need,
`reactor check --against` asks the servers that they name, and a process looks these names up in its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Literal, get_args

import pytest
import yaml

from reactor.process import observer_jobs
from reactor.rulefiles import snapshot
from reactor.settings.model import Settings
from reactor.workbench.livecheck.server_questions import jobs
from reactor.workbench.rights.collected import rights
from rules import loader
from rules.catalog import FILE_KINDS, MODELS
from rules.loader import LoadedParts, RuleSet
from rules.rulefile.model import Rule
from rules.rulefile.sources import LoadedSource, Source
from rules.rulefile.yaml import Document
from scripts import reference_examples as examples

Asked = Callable[[LoadedParts], object]


class ForgottenWatch(Source):
    """A source in a cluster, without a list of what it needs there."""

    kind: Literal["ForgottenWatch"] = "ForgottenWatch"
    cluster: str = "east"


class ForgottenQuery(Source):
    """A source that asks a server whether its query is one."""

    kind: Literal["ForgottenQuery"] = "ForgottenQuery"
    prometheus: str = "main"


class ForgottenRule(Rule):
    """A kind that no list has."""

    kind: Literal["ForgottenRule"] = "ForgottenRule"

    @property
    def default_peers(self) -> tuple[str, ...]:
        return ("cluster/*",)


@cache
def parts() -> LoadedParts:
    """All sources and rules of the examples."""
    files = [path for path in examples.files() if not examples.is_test(path) and not examples.is_settings(path)]
    return loader.examine([(path.name, path.read_text("utf-8")) for path in files])


def alone(sources: Iterable[Any] = (), rules: Iterable[Any] = ()) -> LoadedParts:
    """These, as if no other were in a file."""
    return LoadedParts(sources=list(sources), rules=list(rules))


@cache
def described() -> Settings:
    """Settings with the route kinds that the examples name."""
    kinds = yaml.safe_load((examples.FOLDER / "reactor.yaml").read_text("utf-8"))["routeKinds"]
    return Settings.model_validate({"routeKinds": kinds})


def permissions(of: LoadedParts) -> object:
    sources, rules = [one for one, _, _ in of.sources], [one for one, _, _ in of.rules]
    return rights(sources, rules, described(), as_if_enforced=True)


def questions(of: LoadedParts) -> object:
    return list(jobs(of, ["east"], [], {}))


def names(of: LoadedParts) -> object:
    rules = RuleSet(tuple(one for one, _, _ in of.rules), tuple(one for one, _, _ in of.sources))
    return list(snapshot._unknown(rules, Settings()))


PLACES = {
    "reactor/workbench/rights/collected.py": permissions,
    "reactor/workbench/livecheck/server_questions.py": questions,
    "reactor/rulefiles/snapshot.py": names,
}
place = pytest.mark.parametrize(("path", "asked"), PLACES.items(), ids=["rbac", "check", "settings"])


def test_every_kind_has_an_example() -> None:
    there = {type(one) for one, _, _ in (*parts().sources, *parts().rules)}
    every = {*get_args(LoadedSource), *MODELS}
    missing = sorted(f"docs/examples/keys: no {one.__name__}" for one in every - there)
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("asked", PLACES.values(), ids=["rbac", "check", "settings"])
def test_every_kind_that_names_a_server_says_what_it_needs_there(asked: Asked) -> None:
    forgotten = set[str]()
    for one in [*(alone(sources=[it]) for it in parts().sources), *(alone(rules=[it]) for it in parts().rules)]:
        try:
            asked(one)
        except NotImplementedError as error:
            forgotten.add(str(error))
    assert not forgotten, "\n".join(sorted(forgotten))


@place
def test_a_source_that_names_a_cluster_is_not_skipped(path: str, asked: Asked) -> None:
    """Its role had no permission, and no check asked the cluster: noticed once the source ran and was refused."""
    source = ForgottenWatch(name="x", target="custom/x")
    with pytest.raises(NotImplementedError, match=f"ForgottenWatch names a cluster, and has no case in {path}"):
        asked(alone(sources=[(source, Document("x.yaml", ""), ())]))


def test_a_source_that_names_a_prometheus_is_asked_about() -> None:
    source = ForgottenQuery(name="x", target="custom/x")
    assert permissions(alone(sources=[(source, Document("x.yaml", ""), ())])) == set()
    with pytest.raises(NotImplementedError, match="ForgottenQuery names a prometheus"):
        questions(alone(sources=[(source, Document("x.yaml", ""), ())]))


@place
def test_a_rule_that_acts_is_not_skipped(path: str, asked: Asked) -> None:
    with pytest.raises(NotImplementedError, match=f"ForgottenRule acts, and has no case in {path}"):
        asked(alone(rules=[(ForgottenRule(name="x"), Document("x.yaml", ""), ())]))


def test_what_a_kind_reads_besides_sources_has_a_job() -> None:
    read = observer_jobs._read(RuleSet(tuple(one for one, _, _ in parts().rules), ()))
    assert all(read.values()), "no example reads what a job is for"


def test_what_no_job_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rules would wait for it without end."""
    forgotten = replace(FILE_KINDS[MODELS[0]], reads=lambda _: [3])
    monkeypatch.setattr(observer_jobs, "file_kind_of", lambda _: forgotten)
    with pytest.raises(LookupError, match=r"ForgottenRule reads a int, and no job in reactor.process.observer_jobs"):
        observer_jobs._read(RuleSet((ForgottenRule(name="x"),), ()))
