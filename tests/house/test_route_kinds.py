"""The page of route kinds, and the permissions in deploy/, say what the code uses."""

from __future__ import annotations

from pathlib import Path

import yaml

from rules.rulefile.route_kinds import ROUTE_KINDS, RouteFormat

ROOT = Path(__file__).parents[2]


def row(name: str, kind: RouteFormat) -> str:
    """A kind's row in the table."""
    rule = "none" if not kind.has_rules else "index or name" if kind.rule_name else "index"
    absent = "not allowed" if kind.default_weight is None else str(kind.default_weight)
    whole = str(kind.sum_to) if kind.sum_to else f"any ratio{', all zero too' if kind.all_zero else ''}"
    paths, versions = (", ".join(f"`{one}`" for one in some) for some in (kind.backends, kind.versions))
    return f"| `{name}` | `{kind.plural}.{kind.group}` | {paths} | {rule} | {absent} | {whole} | {versions} |"


def test_the_table_has_every_kind_as_it_is_described() -> None:
    page = (ROOT / "docs/reference/route-kinds.md").read_text()
    assert [name for name, kind in ROUTE_KINDS.items() if row(name, kind) not in page] == []


def test_the_table_says_of_every_kind_on_what_it_is_tested() -> None:
    tested = (ROOT / "docs/reference/route-kinds.md").read_text().partition("## Tested on")[2]
    assert [name for name in (*ROUTE_KINDS, "Custom") if f"`{name}`" not in tested] == []


def test_the_role_for_traffic_covers_every_kind() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy/kustomize/base/rbac.yaml").read_text())
    role = next(
        one for one in documents if one["metadata"]["name"] == "reactor-traffic" and one["kind"] == "ClusterRole"
    )
    granted = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if set(rule["verbs"]) == {"get", "list", "watch", "patch"}
    }
    assert granted == {(kind.group, kind.plural) for kind in ROUTE_KINDS.values()}
