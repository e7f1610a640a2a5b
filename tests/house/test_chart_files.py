"""What the chart repeats of the product is what the product says now."""

from __future__ import annotations

import runpy
from pathlib import Path

import yaml
from click.testing import CliRunner

from reactor.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/alert-reactor"
USERS = ("reactor", "receiver", "router", "observer", "decider", "executor", "viewer", "operator", "zones")


def test_the_users_of_nats_are_those_that_the_command_prints() -> None:
    words = [word for user in USERS for word in ("--role", user)]
    printed = CliRunner().invoke(cli, ["bus", "permissions", *words]).output
    assert (CHART / "files/users.conf").read_text() == printed, (
        f"run: reactor bus permissions {' '.join(words)} > deploy/helm/alert-reactor/files/users.conf"
    )


def test_the_default_permissions_are_those_of_the_default_rules(tmp_path: Path) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    (tmp_path / "services.yaml").write_text(values["rules"]["services.yaml"])
    done = CliRunner().invoke(cli, ["rbac", str(tmp_path / "services.yaml"), "--cluster", "local", "-o", "helm"])
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(done.output)["rbac"]["grants"] == values["rbac"]["grants"]


def test_the_first_rule_is_that_of_kustomize() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["rules"]["services.yaml"] == (ROOT / "deploy/kustomize/base/rules/services.yaml").read_text()


def test_the_page_of_the_values_is_current() -> None:
    page = runpy.run_path(str(ROOT / "scripts/gen-helm-values.py"))["page"]
    assert (CHART / "README.md").read_text() == page(), "run: python scripts/gen-helm-values.py"


def test_the_alerts_of_the_chart_are_those_of_deploy() -> None:
    text = (ROOT / "deploy/prometheus/reactor-alerts.yml").read_text()
    assert (CHART / "files/reactor-alerts.yml").read_text() == text, (
        "run: cp deploy/prometheus/reactor-alerts.yml deploy/helm/alert-reactor/files/"
    )


def test_the_chart_has_no_links_of_which_helm_warns() -> None:
    assert [path for path in CHART.rglob("*") if path.is_symlink()] == []
