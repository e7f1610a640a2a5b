"""What a person can try once the story is told: commands to copy, with this run's addresses in them."""

from __future__ import annotations

import shlex

from reactor.demo import scene
from reactor.demo.world import World


def hints(built: World, receiver_url: str) -> str:
    """Give the text."""
    service = built.services[scene.PRIMARY]
    kubectl = _line("kubectl", "--kubeconfig", built.kubeconfig, "--context", scene.HOME, "-n", scene.NAMESPACE)
    post = _line("curl", "-H", "Content-Type: application/json", f"{receiver_url}/v1/alerts/{scene.ALERTS}", "--data")
    offers = {
        "break the service": _line("curl", "-X", "POST", f"{service}/break"),
        "heal it": _line("curl", "-X", "POST", f"{service}/heal"),
        "let Alertmanager say it is bad": f"{post} @{built.alert(firing=True)}",
        "let Alertmanager say it is over": f"{post} @{built.alert(firing=False)}",
        "look at the route": f"{kubectl} get trafficsplit {scene.ROUTE} -o yaml",
        "ask what the rule waits for": _line("reactor", "status", "--config", built.config),
        "read the rules": _line("cat", built.rules),
        "read the reactor's log": _line("tail", "-f", built.folder / "reactor.log"),
    }
    lines = [f"  # {what}\n  {command}" for what, command in offers.items()]
    return "\n".join(["\nIt keeps running. Try, in another terminal:", *lines, "Ctrl-C ends it.\n"])


def _line(*words: object) -> str:
    return shlex.join(str(word) for word in words)
