"""Commands that a person can try once the story is told: to copy, with this run's addresses in them."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from reactor.demo import scene
from reactor.demo.demo_world import DemoWorld

_COLUMNS = 74
"""Columns of a command's line, without the two blanks before it and the backslash at its end."""


def hints(built: DemoWorld, receiver_url: str) -> str:
    """Give the text."""
    service = built.services[scene.PRIMARY]
    kubectl = ("kubectl", "--kubeconfig", built.kubeconfig, "--context", scene.HOME, "-n", scene.NAMESPACE)
    post = ("curl", "-H", "Content-Type: application/json", f"{receiver_url}/v1/alerts/{scene.ALERTS}", "--data")
    offers = {
        "break the service": _line("curl", "-X", "POST", f"{service}/break"),
        "heal it": _line("curl", "-X", "POST", f"{service}/heal"),
        "let Alertmanager say it is bad": _line(*post, f"@{built.alert(firing=True)}"),
        "let Alertmanager say it is over": _line(*post, f"@{built.alert(firing=False)}"),
        "look at the route": _line(*kubectl, "get", "trafficsplit", scene.ROUTE, "-o", "yaml"),
        "ask what the rule waits for": _line(*reactor(), "status", "--config", built.config),
        "read the rules": _line("cat", built.rules),
        "read the reactor's log": _line("tail", "-f", built.folder / "reactor.log"),
    }
    lines = [f"  # {what}\n  {command}" for what, command in offers.items()]
    return "\n".join(["\nIt keeps running. Try, in another terminal:", *lines, "Ctrl-C ends it.\n"])


def reactor() -> tuple[str, ...]:
    """Give the command that a shell finds: the one that runs, by its whole path where PATH has another or none."""
    own = Path(sys.executable).with_name("reactor")
    found = shutil.which("reactor")
    if found is not None and (not own.exists() or Path(found).samefile(own)):
        return ("reactor",)
    return (str(own),) if own.exists() else (sys.executable, "-m", "reactor.cli.main")


def _line(*words: object) -> str:
    """Give a command, over several lines where it is long: each ends as a shell reads on."""
    lines = [""]
    for word in map(str, words):
        quoted = shlex.quote(word)
        if lines[-1] and len(lines[-1]) + len(quoted) > _COLUMNS:
            lines.append("  ")
        lines[-1] += quoted if not lines[-1].strip() else f" {quoted}"
    return " \\\n  ".join(lines)
