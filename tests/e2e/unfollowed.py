"""Commands of pages that tests/e2e/test_how_to.py does not run: another test does, or nothing can, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

OTHERS: Mapping[str, str] = {
    "docs/how-to/upgrade-and-restart.md": "tests/e2e/test_upgrade_page.py",
}
"""Pages that another test follows from their first command to the last."""
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "README.md": {"make demo": "tests/e2e/test_demo.py"},
    "docs/quickstart.md": {
        "make demo": "tests/e2e/test_demo.py",
        "reactor run": "tests/e2e/test_quickstart.py",
        "reactor status": "tests/e2e/test_quickstart.py",
        "kubectl": "tests/e2e/test_quickstart.py",
    },
    "docs/how-to/install-in-kubernetes.md": dict.fromkeys(
        ("kubectl create", "kubectl -n reactor create", "reactor check", "reactor rbac", "helm upgrade", "sed"),
        "tests/e2e/test_chart.py",
    ),
    "docs/how-to/run-in-production.md": {
        "curl": "tests/e2e/test_compose.py",
        "docker compose run": "tests/e2e/test_compose.py",
        "kubectl create": "tests/e2e/test_chart.py",
        "kubectl -n reactor create": "tests/e2e/test_chart.py",
    },
}
"""By how a command of a page begins: the test that does the same."""
NEVER: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "make test": "CI's own first command, which this test is part of",
        "uv tool install": "needs a package index; tests/house/test_packaging.py installs the wheel",
        "python3 -m venv": "needs a package index; tests/house/test_packaging.py installs the wheel",
        "docker build": "needs Docker; .github/workflows/image.yml builds the image",
    },
    "docs/quickstart.md": {
        "uv tool install": "needs a package index; tests/house/test_packaging.py installs the wheel"
    },
    "docs/how-to/operate.md": {
        'eval "$(_REACTOR_COMPLETE=zsh': "needs zsh; tests/unit/cli has a test of each shell's completion",
        "_REACTOR_COMPLETE=fish": "needs fish; tests/unit/cli has a test of each shell's completion",
    },
    "docs/how-to/replace-linkerd-failover.md": {
        "kubectl -n shop annotate": "kubectl's own command: it takes annotations away, and asks nothing of the reactor",
    },
    "docs/how-to/run-in-production.md": {
        "kubectl apply": "needs a cluster with kubelets; tests/contract/kube/rights/test_base.py applies the objects",
    },
    "docs/how-to/run-on-a-host.md": {
        "python3 -m venv": "needs a package index; tests/house/test_deploy_files.py compares the page with the unit",
        "/opt/alert-reactor": "needs a package index; tests/house/test_deploy_files.py compares the page with the unit",
        "useradd": "changes the machine's users; tests/house/test_deploy_files.py compares the page with the unit",
        "usermod": "changes the machine's users, and needs HAProxy's group",
        "mkdir": "writes to /etc, as root",
        "cp deploy": "writes to /etc, as root; tests/house/test_deploy_files.py lets systemd verify the unit",
        "chown": "writes to /etc, as root",
        "systemctl": "needs systemd as process 1; tests/house/test_deploy_files.py lets systemd verify the unit",
        "curl": "needs the unit to run; each test of tests/e2e asks /readyz of a reactor",
    },
}  # fmt: skip
"""By how a command of a page begins: why no test runs it."""


def not_run_here(page: str, command: str) -> str:
    """Say why a command of a page is not run by tests/e2e/test_how_to.py; "" where it is."""
    listed = {**ELSEWHERE.get(page, {}), **NEVER.get(page, {})}
    return next((why for start, why in listed.items() if command.startswith(start)), "")
