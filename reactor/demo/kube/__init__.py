"""A Kubernetes API emulator: the demo's clusters, and the API server of tests that have no real one.

It speaks HTTP, so clients are the real ones; the contract tests in `tests/contract/kube` run on it and on real API
servers alike, which keeps it honest. Not here: protobuf bodies (some `kubectl create` sub-commands send them; files and
`apply` are JSON), admission webhooks, CEL rules, conversion, garbage collection, controllers of any kind, RBAC.
"""

from reactor.demo.kube.cluster import EmulatedCluster
from reactor.demo.kube.cluster_state import WORLD
from reactor.demo.kube.emulator import Emulator
from reactor.demo.kube.errors import StatusError
from reactor.demo.kube.faults import (
    CutWatch,
    Delay,
    Empty,
    EndWatch,
    FailWatch,
    Fault,
    Forbid,
    Handle,
    Hang,
    Html,
    LoseAnswer,
    Reset,
    Stale,
    StatusFault,
    TruncateWatch,
)
from reactor.demo.kube.kubeconfig import kubeconfig, write_kubeconfig
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.writelog import LoggedWrite, WriteLog

__all__ = [
    "WORLD",
    "CutWatch",
    "Delay",
    "Empty",
    "EmulatedCluster",
    "Emulator",
    "EndWatch",
    "FailWatch",
    "Fault",
    "Forbid",
    "Handle",
    "Hang",
    "Html",
    "JsonObject",
    "LoggedWrite",
    "LoseAnswer",
    "Reset",
    "Stale",
    "StatusError",
    "StatusFault",
    "TruncateWatch",
    "WriteLog",
    "kubeconfig",
    "write_kubeconfig",
]
