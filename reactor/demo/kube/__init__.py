"""A Kubernetes API emulator: the demo's clusters, and the real server's stand-in where tests have none.

It speaks HTTP, so clients are the real ones; the contract tests in `tests/contract/kube` run on it and on real API
servers alike, which keeps it honest. Not here: protobuf bodies (some `kubectl create` sub-commands send them; files and
`apply` are JSON), admission webhooks, CEL rules, conversion, garbage collection, controllers of any kind, RBAC.
"""

from reactor.demo.kube.cluster import WORLD, Cluster
from reactor.demo.kube.emulator import Emulator
from reactor.demo.kube.errors import ApiError
from reactor.demo.kube.faults import (
    Answer,
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
    TruncateWatch,
)
from reactor.demo.kube.kubeconfig import kubeconfig, write_kubeconfig
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.writelog import Write, WriteLog

__all__ = [
    "WORLD",
    "Answer",
    "ApiError",
    "Cluster",
    "CutWatch",
    "Delay",
    "Empty",
    "Emulator",
    "EndWatch",
    "FailWatch",
    "Fault",
    "Forbid",
    "Handle",
    "Hang",
    "Html",
    "JsonObject",
    "LoseAnswer",
    "Reset",
    "Stale",
    "TruncateWatch",
    "Write",
    "WriteLog",
    "kubeconfig",
    "write_kubeconfig",
]
