"""`reactor rbac`: the least permissions in each cluster for the rules in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from reactor.cli.shared.files import find_rules, read_all, shown
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, say
from reactor.settings import model as settings_
from rules import loader
from rules.core.errors import Problem

PROCESSES: tuple[str, ...] = ("receiver", "router", "observer", "decider", "executor")
"""The roles of `reactor run`, in the order in which a message passes them."""


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
    help="Settings file: clusters, route kinds, and the rule files where no FILE is given.",
)  # fmt: skip
@click.option("--cluster", "only", help="Print the objects of this cluster alone. Default: of all.")
@click.option("--namespace", default="reactor", show_default=True, help="The namespace of the ServiceAccounts.")
@click.option("--name", default="reactor", show_default=True, help="What the names of all objects begin with.")
@click.option("--single", is_flag=True, help="One ServiceAccount for processes with all roles.")
@click.option("--enforce", is_flag=True, help="Also what rules in DryRun will need when they act.")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "helm"]), default="yaml", show_default=True,
    help="yaml, json: objects for kubectl apply. helm: values of the chart, for the cluster of --cluster.",
)  # fmt: skip
def rbac(
    files: tuple[str, ...], config: Path | None, only: str | None, namespace: str, name: str, output: str,
    *, single: bool, enforce: bool,
) -> None:  # fmt: skip
    """Print the permissions in Kubernetes that the rules need, and no more.

    Each role of the reactor has a ServiceAccount. Observers read what sources and rules name. Executors change what
    rules change that act: a rule in DryRun needs no permission to write, so print it again before you set Enforce. The
    other roles speak to no cluster. Where rules name a namespace, the permission holds in that namespace only; where
    they name a route, executors may change that route only.

    \b
    reactor rbac -c reactor.yaml --cluster east | kubectl --context east apply -f -
    reactor rbac rules/ --cluster local -o helm > rbac.yaml
    helm upgrade reactor deploy/helm/alert-reactor -f rbac.yaml

    Exit code: 0; 1 if the files or settings cannot be used.
    """
    from reactor.workbench.rights.collected import rights
    from reactor.workbench.rights.manifests import for_helm, rules_of

    with told():
        settings = settings_.load(config)
    names, problems = find_rules(files or settings.rule_files)
    reading = loader.examine(read_all([one for one in names if not Path(one).stem.endswith("_test")], problems))
    _refuse([one for one in (*problems, *reading.problems) if one.severity == "error"])
    try:
        found = rights(
            [one[0] for one in reading.sources], [one[0] for one in reading.rules], settings, as_if_enforced=enforce
        )
    except KeyError as error:
        raise click.UsageError(f"routeKinds.{error.args[0]}: the settings do not name it: give --config") from error
    clusters = sorted({one.cluster for one in found} | set(settings.clusters))
    if only is not None and only not in clusters:
        raise click.UsageError(f"no rule and no setting names a cluster {only!r}: there are {', '.join(clusters)}")
    wanted = [only] if only is not None else clusters
    if output == "helm" and len(wanted) != 1:
        raise click.UsageError(f"--output helm is for one cluster: give --cluster, one of {', '.join(clusters)}")
    for cluster in wanted:
        of_roles = {
            role: rules_of(one.grant for one in found if (one.cluster, one.role) == (cluster, role))
            for role in PROCESSES
        }
        if output == "helm":
            say(_yaml({"rbac": {"grants": for_helm(of_roles)}}))
            continue
        objects = list(_objects(name, namespace, of_roles, single=single))
        if output == "json":
            say(as_json({"apiVersion": "v1", "kind": "List", "items": objects}))
        else:
            documents = "---\n".join(map(_yaml, objects))
            say(f"# cluster {cluster}\n{documents}---")


def _objects(
    name: str, namespace: str, of_roles: dict[str, dict[str, list[dict[str, Any]]]], *, single: bool
) -> Iterator[dict[str, Any]]:
    from reactor.workbench.rights.manifests import account, objects

    if single:
        yield account(name, namespace)
    for role, rules in of_roles.items():
        own = f"{name}-{role}"
        if not single:
            yield account(own, namespace)
        yield from objects(name if single else own, namespace, rules, as_role=own)


def _refuse(errors: list[Problem]) -> None:
    if errors:
        for one in errors:
            say(shown(one), err=True)
        raise SystemExit(1)


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=120)
