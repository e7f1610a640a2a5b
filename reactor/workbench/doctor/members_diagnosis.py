"""Checks that the reactors on the bus are alive, use the same rules, and own all partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reactor.fleet.presence import Process
from reactor.workbench.doctor.finding import Finding, Findings

GROUP, VERSIONS = "members", "versions"


def findings(processes: Sequence[Process], partitions: Sequence[Mapping[str, Any]], mine: str, own: str) -> Findings:
    """Give what is to be said of processes, and of partitions as `reactor members` has them.

    `mine`: the digest of the rule files here; empty: none were read. `own`: the version of this command.
    """
    if not processes:
        missing = Finding(GROUP, "processes", "failed", "no reactor runs on this bus", "reactor run")
        return [missing, Finding(VERSIONS, GROUP, "skipped", "no reactor runs on this bus")]
    alive = Finding(GROUP, "processes", "ok", ", ".join(one.name for one in processes))
    return [alive, _versions(processes, own), *_broken(processes), _rules(processes, mine), _owners(partitions)]


def _versions(processes: Sequence[Process], own: str) -> Finding:
    others = [f"{one.version or 'an older version'} on {one.name}" for one in processes if one.version != own]
    if others:
        detail = f"{own} here, {', '.join(others)}"
        return Finding(
            VERSIONS, GROUP, "warning", detail, "upgrade all to one version: docs/how-to/upgrade-and-restart.md"
        )
    return Finding(VERSIONS, GROUP, "ok", f"all are {own}")


def _broken(processes: Sequence[Process]) -> Findings:
    fix = "reactor check FILES, with the rule files of that process"
    return [
        Finding(GROUP, "files", "failed", f"{one.name} keeps its older rules: {problem}", fix)
        for one in processes
        for problem in one.problems
    ]


def _rules(processes: Sequence[Process], mine: str) -> Finding:
    users: dict[str, list[str]] = {}
    for one in processes:
        users.setdefault(one.rules, []).append(one.name)
    said = "; ".join(f"{digest} on {', '.join(names)}" for digest, names in sorted(users.items()))
    if len(users) > 1:
        return Finding(GROUP, "rules", "warning", f"rules differ: {said}", "give each process the same rule files")
    if mine and mine not in users:
        detail = f"the files here are {mine}, the reactors use {said}"
        return Finding(GROUP, "rules", "warning", detail, "reload the reactors, or name the files that they use")
    return Finding(GROUP, "rules", "ok", f"all use {said}")


def _owners(partitions: Sequence[Mapping[str, Any]]) -> Finding:
    lost = [str(one["partition"]) for one in partitions if not one["alive"]]
    if lost:
        detail = f"{len(lost)} of {len(partitions)} partitions have no living owner: {', '.join(lost)}"
        return Finding(GROUP, "partitions", "failed", detail, "reactor run; reactor members shows owners")
    return Finding(GROUP, "partitions", "ok", f"{len(partitions)}, each with a living owner")
