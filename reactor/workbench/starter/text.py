"""A starter as a rule file, with comments for who has never seen any."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from reactor.rulefiles.writer import as_yaml
from reactor.workbench.starter.making import JsonObject, Made, Starter
from rules.rulefile.model import API_VERSION

_WIDTH = 118
_SOURCES = {
    "EndpointsWatch": "A Service is Healthy while it has a ready endpoint: service/<cluster>/<namespace>/<service>.",
    "ClusterProbe": "Whether the API server answers: cluster/<cluster>.",
    "WorkloadWatch": "Where copies are, and how they are: workload/<cluster>/<namespace>/<kind>/<name>.",
    "NodeWatch": "Nodes, and by their zone label the zones: zone/<cluster>/<zone>.",
}
_ROUTES = """Routes: when the primary has been bad for tolerationSeconds its weight goes to the other backends, and back
once it has been good for recoverySeconds; each time that it fails again within an hour it waits twice as long. The
endpoints speak for the way back, whatever other signals you let it leave by; where nobody can know without traffic,
take mode: Trial. Is the primary the right one? Whose health speaks for a backend that is only a mirror? Give it target:
service/<other cluster>/<namespace>/<service>, and that cluster an EndpointsWatch."""
_WORKLOADS = """Workloads that stand in several clusters: when a cluster has been bad for five minutes (Karmada's
default), its replicas are placed on the others, and its copy goes once they are Healthy. Remove those that belong to
their cluster (ingress controllers, agents), and those whose replicas somebody else sets: GitOps, an autoscaler. With
failover.application a copy that is bad on a healthy cluster moves, too."""
_ZONES = """Zones: a zone that burns is fenced, traffic leaves it, pods are asked to go, and all of it comes back in
reverse. Look at the plan first: reactor zone plan <rule> <zone>."""


def text_of_rules(starter: Starter, name: str, test: str) -> str:
    """Give the rule file, called `name`, with its test in `test`."""
    lines = [
        *comment(
            f"Written by reactor init from what stands on {', '.join(starter.clusters)}. Nothing acts yet: every rule "
            "is in mode DryRun, decides, and says what it would do. So go through it, remove what you do not want, "
            "then:"
        ),
        f"#   reactor check {name} && reactor test {test}",
        f"#   reactor run --config reactor.yaml {name}     # its settings name the clusters; then: reactor status",
        *comment("When a rule has said the right things for a while: mode: Enforce, one rule at a time."),
    ]
    if starter.left_out:
        lines += ["#", "# Not in here:", *_points(starter.left_out)]
    lines += ["", f"apiVersion: {API_VERSION}", "", "sources:", *_listed_sources(starter.sources), "", "rules:"]
    sections = ((_ROUTES, starter.routes), (_WORKLOADS, starter.workloads), (_ZONES, starter.zones))
    parts = (_section(about, rules) for about, rules in sections if rules)
    return "\n".join(lines) + "\n" + "\n".join(parts)


def _points(notes: Iterable[str]) -> Iterator[str]:
    """Give each as a point of a list."""
    for note in notes:
        yield from textwrap.wrap(note, _WIDTH, initial_indent="# - ", subsequent_indent="#   ")


def comment(text: str, indent: str = "") -> list[str]:
    """Give the lines of a comment."""
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _listed_sources(sources: Iterable[JsonObject]) -> Iterator[str]:
    told: set[str] = set()
    for source in sources:
        kind = source["kind"]
        if kind not in told:
            yield from comment(_SOURCES[kind], "  ")
            told.add(kind)
        yield from entry(source)


def _section(about: str, rules: Sequence[Made]) -> str:
    lines = comment(about, "  ")
    for made in rules:
        lines += ["", *comment(made.about, "  "), *entry(made.rule)]
    return "\n".join(lines) + "\n"


def entry(value: JsonObject) -> list[str]:
    """Give an entry of a list, as it stands within its key."""
    return textwrap.indent(as_yaml([value], compact=True), "  ").rstrip("\n").split("\n")
