"""Values that the chart repeats are those of the product."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reactor.cli.main import cli
from reactor.settings import model as settings
from reactor.settings.bus_settings import BusSettings
from tests.kube.charts import helm, rendered, why_no_helm

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/alert-reactor"
ALERTS = ("reactor-alerts.yml", "reactor-slos.yml")
PAGE = ROOT / "docs/how-to/install-in-kubernetes.md"
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
    for name in ALERTS:
        text = (ROOT / "deploy/prometheus" / name).read_text()
        assert (CHART / "files" / name).read_text() == text, (
            f"run: cp deploy/prometheus/{name} deploy/helm/alert-reactor/files/"
        )


def test_the_chart_has_no_links_of_which_helm_warns() -> None:
    assert [path for path in CHART.rglob("*") if path.is_symlink()] == []


needs_helm = pytest.mark.skipif(bool(why_no_helm()), reason=why_no_helm())
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine")


@needs_helm
def test_the_nats_of_kustomize_is_that_of_the_chart() -> None:
    done = subprocess.run([ROOT / "scripts/gen-kustomize", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def pods(objects: list[Any]) -> dict[str, Any]:
    """Give the pod of each object that has one, by the object's name."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in objects if "template" in one.get("spec", {})
    }


def secrets(pod: Any) -> list[str]:
    """Give the names of the Secrets in /run/reactor."""
    [volume] = [one for one in pod["volumes"] if one["name"] == "secrets"]
    return [one["secret"]["name"] for one in volume["projected"]["sources"]]


@needs_helm
def test_helm_finds_nothing_to_say_of_it() -> None:
    words = [str(helm()), "lint", "--strict", str(CHART)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = {
    "layout=PerPod": "layout",
    "roles.decider.replicas=-1": "replicas",
    "roles.scribe.replicas=1": "scribe",
    "bus.url={http://nats:4222}": "url",
    "bus.replicas=6": "replicas",
    "bus.maxTargetsPerPublisher=1000001": "maxTargetsPerPublisher",
    "image.digest=sha256:12": "digest",
    "secrets[0].name=a,secrets[0].roles={scribe}": "roles",
    "topologySpread[0].whenUnsatisfiable=Never": "topologySpread",
    "priorityClass.value=2000000000": "value",
    "nats.config.cluster.replicas=2": "replicas",
    "networkPolicies.enabled=true": "networkPolicies",
}


@needs_helm
@pytest.mark.parametrize("value", WRONG)
def test_a_wrong_value_is_refused_by_its_name(value: str) -> None:
    words = [str(helm()), "template", "reactor", str(CHART), "--set", value]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "don't meet the specifications of the schema" in done.stderr
    assert WRONG[value] in done.stderr


def test_the_schema_bounds_what_the_settings_bound() -> None:
    bus = json.loads((CHART / "values.schema.json").read_text())["properties"]["bus"]["properties"]
    of_settings = BusSettings.model_json_schema()["properties"]
    for key in ("replicas", "maxTargetsPerPublisher"):
        bounds = {bound: of_settings[key][bound] for bound in ("minimum", "maximum")}
        assert {bound: bus[key][bound] for bound in bounds} == bounds, key


@needs_helm
def test_all_alerts_are_in_the_chart() -> None:
    [rule] = [one for one in rendered("--set", "prometheusRule.enabled=true") if one["kind"] == "PrometheusRule"]
    groups = [group for name in ALERTS for group in yaml.safe_load((CHART / "files" / name).read_text())["groups"]]
    assert rule["spec"] == {"groups": groups}


EXTERNAL = "nats.enabled=false,bus.url={tls://nats.example:4222}"


@needs_helm
@pytest.mark.parametrize(
    "identity",
    ["credentials=/run/reactor/nats.creds", "nkeySeedFile=/run/reactor/nkey", "certFile=/run/reactor/crt"],
)
@pytest.mark.parametrize("layout", ["PerRole", "Combined"])
def test_a_client_that_shows_no_password_to_the_bus_needs_no_secret_with_passwords(
    identity: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = f"{EXTERNAL},layout={layout},settings.bus.{identity},secrets[0].name=nats-identity"
    values += ",secrets[0].roles={receiver,router,observer,decider,executor,bus-init}"
    values += ",settings.bus.keyFile=/run/reactor/key" if "certFile" in identity else ""
    objects = rendered("--set", values)
    [text] = [one["data"]["reactor.yaml"] for one in objects if one["metadata"]["name"] == "reactor-settings"]
    (tmp_path / "reactor.yaml").write_text(text)
    found = pods(objects)
    assert len(found) == (6 if layout == "PerRole" else 1)
    for spec in found.values():
        assert secrets(spec) == ["nats-identity"]
        for one in spec["containers"][0].get("env", []):
            monkeypatch.setenv(one["name"], one.get("value", "a-pod"))
        monkeypatch.setenv("REACTOR_RECEIVER__BEARER_TOKEN_FILES", "[]")
        monkeypatch.setenv("REACTOR_RECEIVER__LISTEN", "127.0.0.1:8484")
        assert settings.load(tmp_path / "reactor.yaml").bus.user is None


@needs_helm
def test_a_certificate_goes_together_with_a_user() -> None:
    values = f"{EXTERNAL},settings.bus.certFile=/run/reactor/crt,settings.bus.user=reactor"
    for name, spec in pods(rendered("--set", values)).items():
        assert "reactor-bus" in secrets(spec), name


@needs_helm
def test_pods_name_no_priority_class_that_does_not_exist() -> None:
    for values, name in {
        "priorityClass.create=true": "reactor",
        "priorityClass.create=false": None,
        "priorityClass.create=false,priorityClass.name=high": "high",
    }.items():
        objects = rendered("--set", values)
        assert {spec.get("priorityClassName") for one, spec in pods(objects).items() if "bus-init" not in one} == {name}
        made = [one["metadata"]["name"] for one in objects if one["kind"] == "PriorityClass"]
        assert made == (["reactor"] if "true" in values else [])


@needs_helm
def test_kubeconfigs_are_mounted_for_the_roles_that_the_page_names(tmp_path: Path) -> None:
    [values] = re.findall(r"^```yaml\n(secrets:.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "values.yaml").write_text(values)
    objects = rendered("-f", tmp_path / "values.yaml")
    having = {
        name for name, spec in pods(objects).items() if "nats" not in name and "reactor-kubeconfigs" in secrets(spec)
    }
    assert having == {"reactor-observer", "reactor-executor"}
    [text] = [one["data"]["reactor.yaml"] for one in objects if one["metadata"]["name"] == "reactor-settings"]
    assert yaml.safe_load(text)["clusters"] == {"local": {}, "west": {"kubeconfig": "/run/reactor/west"}}


def test_the_image_that_is_published_is_the_one_that_is_asked_for() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    [of_kustomize] = yaml.safe_load((ROOT / "deploy/kustomize/base/kustomization.yaml").read_text())["images"]
    assert (of_kustomize["newName"], of_kustomize["newTag"]) == (values["repository"], chart["appVersion"])
    workflow = (ROOT / ".github/workflows/image.yml").read_text()
    assert 'IMAGE: "ghcr.io/${{ github.repository }}"' in workflow
    repository = re.search(r"^repo_url: https://github.com/(\S+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert repository is not None
    assert values["repository"] == f"ghcr.io/{repository[1]}"
    # Tags of git are v0.1.0; shell cuts the v off.
    assert 'echo "version=${GITHUB_REF_NAME#v}"' in workflow
    assert '"${{ env.IMAGE }}:${{ steps.version.outputs.version }}"' in workflow
    assert values["repository"] in PAGE.read_text()


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
