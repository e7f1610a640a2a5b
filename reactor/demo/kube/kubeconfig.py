"""Write a kubeconfig for emulated clusters, so that kubectl and the official client can be pointed at them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import yaml

from reactor.demo.kube.emulator import Emulator
from reactor.demo.kube.objects import JsonObject

_OWNER_ONLY = 0o600  # it holds bearer tokens


def kubeconfig(sim: Emulator, names: Iterable[str] = (), *, current: str = "") -> JsonObject:
    """Give a kubeconfig with one context for each cluster (all of them by default), named like the cluster."""
    chosen = list(names) or list(sim.clusters)
    users = [{"name": name, "user": {"token": sim.clusters[name].token or "none"}} for name in chosen]
    contexts = [{"name": name, "context": {"cluster": name, "user": name}} for name in chosen]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": sim.url(name)}} for name in chosen],
        "users": users,
        "contexts": contexts,
        "current-context": current or (chosen[0] if chosen else ""),
    }


def write_kubeconfig(path: Path, sim: Emulator, names: Iterable[str] = (), *, current: str = "") -> Path:
    """Write the kubeconfig to a file that only its owner can read, and give its path."""
    text = yaml.safe_dump(kubeconfig(sim, names, current=current), sort_keys=False)
    # The mode is there before the content is: a file that is tightened later has been readable.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), _OWNER_ONLY)  # it may have been there already, with another mode
        file.write(text)
    return path
