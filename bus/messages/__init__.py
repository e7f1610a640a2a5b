"""Every message that travels, as frozen models in CloudEvents 1.0 envelopes.

Facts go in (observation, inventory, command, outcome, and what groups and guards say to each other), actions come out,
decisions are the audit of both. Structured mode, all in the JSON body: seven CloudEvents headers cost four times the
message (measured, design 4).
"""

from __future__ import annotations

from bus.messages.base import ActionMessage, Health, Message, MessagePart, Mode, Name, Statement, Target, Text, iso
from bus.messages.commands import (
    Approve,
    Command,
    FailbackTraffic,
    FailbackZone,
    FailoverTraffic,
    IsolateZone,
    Pause,
    Reject,
    ReleaseTraffic,
    Resume,
    RetryZone,
)
from bus.messages.health import Observation, RefreshRequest
from bus.messages.isolations import MarkedNodes, ZoneInventory, Zones, ZoneStep
from bus.messages.limiter import AcquireReply, AcquireRequest
from bus.messages.placements import (
    CancelEviction,
    Carrier,
    Cluster,
    ClusterTaints,
    CopyRecord,
    Evict,
    Eviction,
    Place,
    Purge,
    SetTaints,
    Taint,
    TaintLook,
    Workload,
    WorkloadCopy,
    WorkloadRef,
)
from bus.messages.records import (
    ChainLink,
    DecisionRecord,
    Delayed,
    Excess,
    Hold,
    LookSeen,
    Notify,
    Outcome,
    TargetEvidence,
    WantedReply,
    WantedRequest,
    WebhookPost,
)
from bus.messages.routes import (
    LOAD_BALANCERS,
    Backend,
    LoadBalancerKind,
    Route,
    RouteKind,
    RouteRef,
    SetWeights,
    check_place,
)

Inventory = Route | Cluster | ClusterTaints | Workload | WorkloadCopy | Zones
"""Objects that exist."""
TrafficCommand = FailoverTraffic | FailbackTraffic | ReleaseTraffic
AnyCommand = Pause | Resume | Approve | Reject | IsolateZone | FailbackZone | RetryZone | TrafficCommand
Fact = Observation | Inventory | AnyCommand | AcquireRequest | AcquireReply | Outcome
Action = SetWeights | Place | Evict | Purge | CancelEviction | SetTaints | ZoneStep | Notify

__all__ = [
    "LOAD_BALANCERS",
    "AcquireReply",
    "AcquireRequest",
    "Action",
    "ActionMessage",
    "AnyCommand",
    "Approve",
    "Backend",
    "CancelEviction",
    "Carrier",
    "ChainLink",
    "Cluster",
    "ClusterTaints",
    "Command",
    "CopyRecord",
    "DecisionRecord",
    "Delayed",
    "Evict",
    "Eviction",
    "Excess",
    "Fact",
    "FailbackTraffic",
    "FailbackZone",
    "FailoverTraffic",
    "Health",
    "Hold",
    "Inventory",
    "IsolateZone",
    "LoadBalancerKind",
    "LookSeen",
    "MarkedNodes",
    "Message",
    "MessagePart",
    "Mode",
    "Name",
    "Notify",
    "Observation",
    "Outcome",
    "Pause",
    "Place",
    "Purge",
    "RefreshRequest",
    "Reject",
    "ReleaseTraffic",
    "Resume",
    "RetryZone",
    "Route",
    "RouteKind",
    "RouteRef",
    "SetTaints",
    "SetWeights",
    "Statement",
    "Taint",
    "TaintLook",
    "Target",
    "TargetEvidence",
    "Text",
    "TrafficCommand",
    "WantedReply",
    "WantedRequest",
    "WebhookPost",
    "Workload",
    "WorkloadCopy",
    "WorkloadRef",
    "ZoneInventory",
    "ZoneStep",
    "Zones",
    "check_place",
    "iso",
]  # fmt: skip
