"""What the chart repeats of the product is what the product says now."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reactor.cli.main import cli
from tests.kube.charts import rendered, why_no_helm

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


needs_helm = pytest.mark.skipif(bool(why_no_helm()), reason=why_no_helm())
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine")


@needs_helm
def test_the_nats_of_kustomize_is_that_of_the_chart() -> None:
    done = subprocess.run([ROOT / "scripts/gen-kustomize", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def pod(objects: list[Any]) -> Any:
    """Give the pod of the one Deployment, without what says the same in two ways."""
    [found] = [one["spec"] for one in objects if one["kind"] == "Deployment"]
    spec = found["template"]["spec"]
    [container] = spec["containers"]
    container["args"] = (
        container["args"][: container["args"].index("--roles")] if "--roles" in container["args"] else container["args"]
    )
    container["env"] = [one for one in container["env"] if one["name"] == "REACTOR_NAME"]  # the settings name the user
    container.setdefault("imagePullPolicy", "IfNotPresent")
    spec.setdefault("automountServiceAccountToken", True)
    for one in spec["topologySpreadConstraints"]:
        one["labelSelector"]["matchLabels"].pop("app.kubernetes.io/instance", "")
    for volume in spec["volumes"]:
        if "configMap" in volume:  # kustomize adds a hash
            volume["configMap"]["name"] = "-".join(volume["configMap"]["name"].split("-")[:2])
        if "projected" in volume:
            volume["projected"]["sources"].sort(key=str)
    return found["replicas"], spec


@needs_helm
@needs_kubectl
@pytest.mark.parametrize(
    ("overlay", "values"), [("ha", ""), ("single", "combined.replicas=1,nats.config.cluster.enabled=false")]
)
def test_an_overlay_runs_what_the_chart_runs(overlay: str, values: str) -> None:
    command = ["kubectl", "kustomize", str(ROOT / "deploy/kustomize/overlays" / overlay)]
    built = [*yaml.safe_load_all(subprocess.run(command, capture_output=True, check=True, text=True).stdout)]
    chart = rendered("--set", f"layout=Combined,{values}".rstrip(","))
    assert pod(built) == pod(chart)
    kinds = ("StatefulSet", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "Service")
    names = {(one["kind"], one["metadata"]["name"]) for one in built if one["kind"] in kinds}
    # One policy for both ports, and no Service for a ServiceMonitor.
    apart = {("NetworkPolicy", "reactor-webhooks"), ("Service", "reactor-metrics")}
    assert names == {(one["kind"], one["metadata"]["name"]) for one in chart if one["kind"] in kinds} - apart
