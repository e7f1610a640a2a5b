"""Karmada's own failover: which of its switches are on, and why we do not act beside it.

Two that evict for the same reason would each take the workload away from where the other has just put it. So the
carrier refuses to move workloads, and names the switch, until one of the two is turned off. Taints on Cluster objects
it writes all the same: to let Karmada act on them is one use of them.
Source: Karmada cmd/controller-manager/app/options; all three are off by default since 1.14.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject, KubeApi

DEPLOYMENT = "/apis/apps/v1/namespaces/karmada-system/deployments/karmada-controller-manager"
_FLAGS = ("enable-no-execute-taint-eviction", "allow-no-execute-taint-policy")
_GATES = "feature-gates"
_FAILOVER, _GRACEFUL = "Failover", "GracefulEviction"
_ALL_BETA = "AllBeta"
"""Feature gate that turns on both gates: they are beta in every release that has them."""
_VARIABLE = re.compile(r"\$\$\([^()]*\)|\$\(([^()]*)\)")
"""`$(NAME)`; with a second dollar it is no reference."""
_VERSION = re.compile(r":v?(\d+)\.(\d+)")
_ON_FROM, _ON_UNTIL = (1, 4), (1, 9)
"""The releases whose Failover gate is on unless told otherwise; 1.12 turned it off, patches of 1.9 to 1.11 too."""


class KarmadaFights(Declined):
    """A switch of Karmada prevents what is asked; `switch` is its name."""

    def __init__(self, switch: str, message: str) -> None:
        super().__init__("KarmadaSwitch", message)
        self.switch = switch


async def refuse_to_fight(host: KubeApi) -> None:
    """Raise KarmadaFights where the controller manager on this cluster evicts by itself; as KubeApi where unreadable.

    `host`: the cluster that Karmada's components run in, which need not be its control plane.
    """
    for found in fights(await host.get(DEPLOYMENT)):
        raise found


def fights(deployment: JsonObject) -> Iterator[KarmadaFights]:
    """Give every switch whose value conflicts with us. Pure."""
    containers = ((deployment.get("spec") or {}).get("template") or {}).get("spec", {}).get("containers") or []
    given = [flag for one in containers for flag in _flags(_words(one))]
    flags, gates = dict(given), _gates(given)
    # All gates of a stage are switched by one word, but for those that are named themselves.
    failover = gates.get(_FAILOVER, gates.get(_ALL_BETA))
    if failover is True or (failover is None and _on_by_default(containers)):
        yield KarmadaFights(
            _FAILOVER,
            "karmada-controller-manager runs with the feature gate Failover on: it evicts workloads by itself. "
            "Start it with --feature-gates=Failover=false, which goes before AllBeta=true, too, or leave "
            "failover to Karmada and the rule in mode DryRun",
        )
    for flag in _FLAGS:
        if _is_true(flags.get(flag)):
            text = f"karmada-controller-manager runs with --{flag}=true: it acts on NoExecute taints by itself"
            yield KarmadaFights(flag, f"{text}. Start it without, or leave failover to Karmada")
    if gates.get(_GRACEFUL, gates.get(_ALL_BETA)) is False:
        text = "the feature gate GracefulEviction is off: an eviction task would never end. Start "
        yield KarmadaFights(_GRACEFUL, f"{text}karmada-controller-manager without GracefulEviction=false")


def _words(container: JsonObject) -> Iterator[str]:
    """Give the words of the command line, with the container's variables that Kubernetes puts in for `$(NAME)`."""
    values: dict[str, str] = {}
    for one in container.get("env") or ():
        if "value" in one:  # one from a ConfigMap or a Secret is not known here
            values[one["name"]] = _expanded(one["value"], values)
    for word in (*(container.get("command") or ()), *(container.get("args") or ())):
        yield _expanded(word, values)


def _expanded(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: found[0][1:] if found[1] is None else values.get(found[1], found[0]), text)


def _flags(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Read `--name=value`, `--name value` and `--name`, also where a shell is given all of them as one word."""
    waiting = ""
    for word in (part for given in words for part in ([given] if given.startswith("-") else given.split())):
        if word == "--":
            break  # no flag comes after it
        if word.startswith("-"):
            if waiting:
                yield waiting, "true"
            name, has_value, value = word.lstrip("-").partition("=")
            waiting = "" if has_value else name.replace("_", "-")
            if has_value:
                yield name.replace("_", "-"), value
        elif waiting:
            yield waiting, word
            waiting = ""
    if waiting:
        yield waiting, "true"


def _gates(flags: Iterable[tuple[str, str]]) -> Mapping[str, bool]:
    """Read all gates; the flag may be given more than once, and the last word on a gate counts.

    Of all gates of a stage the first flag's word counts: it has switched them, and a later one leaves alone what is.
    """
    gates: dict[str, bool] = {}
    for name, text in flags:
        if name != _GATES:
            continue
        pairs = (pair.strip().strip("\"'").partition("=") for pair in text.split(","))
        read = {gate.strip().strip("\"'"): _is_true(value.strip()) for gate, has_value, value in pairs if has_value}
        gates |= {gate: on for gate, on in read.items() if gate != _ALL_BETA or gate not in gates}
    return gates


def _is_true(text: str | None) -> bool:
    return (text or "").strip("\"'").lower() in ("true", "1", "t")


def _on_by_default(containers: Sequence[JsonObject]) -> bool:
    for one in containers:
        if version := _VERSION.search(str(one.get("image", "")).partition("@")[0]):
            return _ON_FROM <= (int(version[1]), int(version[2])) < _ON_UNTIL
    return False
