"""State that is carried over: values of the old copy's status become labels of the new one.

As Karmada does it: all values or none, with the purge mode Directly, and into the one cluster that then holds the
workload. Two copies with the same state would both go on from it.
Source: karmada-io/karmada pkg/util/helper/failover.go, pkg/controllers/binding/common.go.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from rules.kinds.workload.model import Behaviour, Policy, StatePreservation
from rules.kinds.workload.state import Relocation
from rules.rulefile.jsonpath import NoValue, read_jsonpath

State = Mapping[str, str]
"""JSONPath to its value, in a copy's status; paths without a value are not in it."""
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?\Z")
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def paths_of(policy: Policy) -> Iterator[str]:
    """Give all paths that a policy asks for."""
    failover = policy.failover
    for behaviour in (failover.application, failover.cluster) if failover is not None else ():
        if behaviour is not None and behaviour.state_preservation is not None:
            yield from (one.json_path for one in behaviour.state_preservation.rules)


def state_of(paths: Iterable[str], status: object) -> dict[str, str]:
    """Give the values at these paths of a status."""
    out = {}
    for path in paths:
        try:
            out[path] = read_jsonpath(path).text_of(status)
        except (NoValue, ValueError):  # not there; a path that cannot be read is refused with the rule
            continue
    return out


def preserved(behaviour: Behaviour, state: State) -> dict[str, str] | str:
    """Give the labels that carry the state of a copy that leaves, or why there are none to be had."""
    wanted = behaviour.state_preservation
    return labels_of(wanted, state) if wanted is not None and behaviour.preserves else {}


def labels_of(wanted: StatePreservation, state: State) -> dict[str, str] | str:
    """Give one label for each rule, or why not: all or nothing."""
    for one in wanted.rules:
        value = state.get(one.json_path)
        if value is None:
            return f"no source has read {one.json_path} of its status"
        if not _LABEL_VALUE.match(value):
            return f"the value at {one.json_path} of its status can be no label: {value[:80]!r}"
    return {one.alias_label_name: state[one.json_path] for one in wanted.rules}


def injected(moves: Iterable[Relocation], plan: Collection[str], before: Collection[str]) -> dict[str, str]:
    """Give the labels of the new copy: those of the newest eviction, into the only cluster, if that is a new one.

    `plan`: all clusters that hold the workload afterwards; `before`: those that held a copy.
    """
    newest = max(moves, key=lambda move: move.evicted_at or _NO_TIME, default=None)
    if newest is None or len(plan) != 1 or any(name in before for name in plan):
        return {}
    return dict(newest.preserved)
