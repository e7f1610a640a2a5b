"""`reactor init`: starter rules from clusters. It only reads clusters, and overwrites no file."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from reactor.cli.shared.files import count
from reactor.cli.shared.old_names import file_options
from reactor.cli.shared.printing import say
from reactor.runtime.errors import SettingsError
from reactor.settings import model as settings_
from reactor.settings.server_settings import ClusterSettings
from reactor.workbench.starter.look import ClusterFindings, look
from reactor.workbench.starter.making import Starter, starter
from reactor.workbench.starter.starter_tests import text_of_test
from reactor.workbench.starter.starter_text import text_of_rules

_KUBECONFIG = "~/.kube/config"
_UNNAMED = "local"
"""Name here of a kubeconfig's current context."""
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
    help="Settings file: all its clusters, or those of --cluster.",
)  # fmt: skip
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), envvar="KUBECONFIG",
    help="Use this instead of settings. Default: KUBECONFIG, or ~/.kube/config.",
)  # fmt: skip
@click.option("--context", "contexts", multiple=True, metavar="NAME", help="A context of the kubeconfig. Repeatable.")
@click.option(
    "--cluster", "names", multiple=True, metavar="NAME",
    help="A cluster of the settings. Without settings: the name for each --context. Repeatable.",
)  # fmt: skip
@click.option("--namespace", "namespaces", multiple=True, metavar="NAME", help="Only this namespace. Repeatable.")
@file_options(default=Path("rules.yaml"), about="The rule file. Its test goes beside it: rules_test.yaml.")
def init(
    config: Path | None, kubeconfig: Path | None, contexts: tuple[str, ...], names: tuple[str, ...],
    namespaces: tuple[str, ...], output_file: Path,
) -> None:  # fmt: skip
    """Generate starter rules from clusters.

    The command writes rules in mode DryRun for routes with two or more backends, for Deployments and StatefulSets that
    several clusters have, and for zones. It also writes their sources and a test. It only reads clusters.

    \b
    reactor init --config reactor.yaml
    reactor init --context east --context west --namespace shop --output-file shop.yaml

    Exit code: 0 if files were written; 1 if nothing was found, a kubeconfig or the settings cannot be used, or a file
    exists already (no file is overwritten).
    """
    test = output_file.with_name(f"{output_file.stem}_test{output_file.suffix}")
    for path in (output_file, test):
        if path.exists():
            _end(f"{path} exists already and is not changed: name another file with --output-file")
    try:
        wanted = _wanted(config, kubeconfig, contexts, names)
        _there(wanted)
        made = starter(asyncio.run(_look(wanted, namespaces)))
    except SettingsError as error:
        _end(str(error))
    for note in made.left_out:
        say(note, err=True)
    if not made.rules:
        _end(f"{', '.join(wanted)}: nothing that a rule could move")
    _write(made, output_file, test)
    told = ((made.routes, "route"), (made.workloads, "workload"), (made.zones, "cluster with zones"))
    parts = [count(len(rules), what) for rules, what in told if rules]
    say(f"{output_file}: {', '.join(parts)}. Tests: {test}")


def _end(message: str) -> None:
    say(f"reactor: {message}", err=True)
    sys.exit(1)


def _wanted(
    config: Path | None, kubeconfig: Path | None, contexts: Sequence[str], names: Sequence[str]
) -> Mapping[str, ClusterSettings]:
    """Give the clusters to look at. Raises SettingsError, and UsageError where the words do not fit together."""
    said = click.get_current_context().get_parameter_source
    by_hand = {name for name in ("config", "kubeconfig", "contexts") if said(name) is ParameterSource.COMMANDLINE}
    if len(by_hand & {"config", "kubeconfig"}) > 1 or by_hand >= {"config", "contexts"}:
        raise click.UsageError("either --config, or --kubeconfig and --context")
    if config is not None and not by_hand & {"kubeconfig", "contexts"}:
        clusters = settings_.load(config).clusters
        if unknown := [name for name in names if name not in clusters]:
            raise click.UsageError(f"no cluster {unknown[0]!r} in {config}: it names {', '.join(clusters) or 'none'}")
        if not clusters:
            raise SettingsError(f"{config}: clusters: it names none")
        return {name: clusters[name] for name in names or clusters}
    if contexts and names and len(contexts) != len(names):
        raise click.UsageError("give as many --cluster as --context: each --cluster names one context")
    path = kubeconfig or Path(_KUBECONFIG)
    chosen: Sequence[str | None] = contexts or names or (None,)
    called = names or [_NO_NAME.sub("-", context).strip("-._") or _UNNAMED for context in contexts] or [_UNNAMED]
    if len(set(called)) < len(called):
        raise click.UsageError("two of the contexts would have one name: name each with --cluster")
    return {
        name: ClusterSettings(kubeconfig=path, context=context) for name, context in zip(called, chosen, strict=True)
    }


def _there(wanted: Mapping[str, ClusterSettings]) -> None:
    """Raises SettingsError where a kubeconfig is no file: the error of the client would be about contexts."""
    for name, cluster in wanted.items():
        file = cluster.kubeconfig
        # KUBECONFIG may list several, of which some may be missing, as for kubectl.
        if file is not None and not any(Path(one).expanduser().is_file() for one in str(file).split(os.pathsep)):
            raise SettingsError(f"cluster {name}: kubeconfig {file}: no such file")


async def _look(wanted: Mapping[str, ClusterSettings], namespaces: Collection[str]) -> list[ClusterFindings]:
    from reactor.clients.clusters import Clusters

    clusters = Clusters(wanted)
    try:
        apis = [await clusters.get(name) for name in wanted]
        return await asyncio.gather(*(look(api, namespaces) for api in apis))
    finally:
        await clusters.close()


def _write(made: Starter, output: Path, test: Path) -> None:
    try:
        for path, text in (
            (output, text_of_rules(made, output.name, test.name)),
            (test, text_of_test(made, output.name)),
        ):
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        _end(f"{error.filename} cannot be written: {error.strerror}")
