"""One pod is asked to leave, by the Eviction API: its disruption budget decides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote
from weakref import WeakKeyDictionary

from reactor.actions.guarded import connection_of
from reactor.actions.zone.evacuation_order import name_of, uid_of
from reactor.clients.kubernetes_port import (
    BudgetsOverlap,
    BudgetSpent,
    Conflict,
    Forbidden,
    Invalid,
    JsonObject,
    KubeApi,
    ObjectNotFound,
)

_BUDGET = re.compile(r"disruption budget (\S+)")
_versions: WeakKeyDictionary[KubeApi, str] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class EvictionResult:
    """The result of asking one pod to leave."""

    pod: str
    status: Literal["Leaving", "Blocked", "Refused"]
    """Blocked: its budget allows none now. Refused: asking again helps only when a person has changed something."""
    why: str = ""


async def evict(api: KubeApi, pod: JsonObject) -> EvictionResult:
    """Ask for one pod. Raises ApiUnavailable, and Forbidden where we may not evict at all."""
    body = {
        "apiVersion": f"policy/{await _version(api)}", "kind": "Eviction",
        "metadata": {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]},
        # Of this very pod: a StatefulSet's successor has the same name.
        "deleteOptions": {"preconditions": {"uid": uid_of(pod)}},
    }  # fmt: skip
    name = name_of(pod)
    try:
        await api.create(f"{path_of(pod)}/eviction", body)
    except (ObjectNotFound, Conflict):
        return EvictionResult(name, "Leaving")  # it is gone, or another has its name
    except BudgetSpent as error:
        return EvictionResult(name, "Blocked", f"budget {_budget(pod, str(error))}")
    except BudgetsOverlap:
        return EvictionResult(
            name, "Refused", f"{name} has more than one disruption budget, so it can never be evicted"
        )
    except Invalid as error:
        return EvictionResult(name, "Refused", str(error))
    except Forbidden as error:
        if "disruption" in str(error) or "budget" in str(error):  # 403: a budget with 2,000 evictions under way
            return EvictionResult(name, "Refused", str(error))
        raise
    return EvictionResult(name, "Leaving")


async def delete(api: KubeApi, pod: JsonObject) -> EvictionResult:
    """Delete one pod, whatever its budget says. Its own grace period stays: what is written is written to the end."""
    try:
        await api.delete(path_of(pod), uid=uid_of(pod))
    except (ObjectNotFound, Conflict):
        pass  # it is gone, or another has its name
    except (Invalid, Forbidden) as error:
        return EvictionResult(name_of(pod), "Refused", str(error))
    return EvictionResult(name_of(pod), "Leaving")


def path_of(pod: JsonObject) -> str:
    """Give the pod's path."""
    namespace, name = quote(pod["metadata"]["namespace"], safe=""), quote(pod["metadata"]["name"], safe="")
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


async def _version(api: KubeApi) -> str:
    """Version of Eviction that the cluster takes: v1 since Kubernetes 1.22; before, policy/v1 was a 400."""
    api = connection_of(api)
    if api not in _versions:
        served = (await api.get("/api/v1")).get("resources") or []
        said = next((one.get("version") for one in served if one.get("name") == "pods/eviction"), None)
        _versions[api] = str(said or "v1beta1")
    return _versions[api]


def _budget(pod: JsonObject, words: str) -> str:
    """Give the name of the budget that the server names: `shop/web`."""
    found = _BUDGET.search(words)
    return f"{pod['metadata']['namespace']}/{found[1]}" if found else f"of {name_of(pod)}"
