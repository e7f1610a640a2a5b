"""Reasons why an action is asked for, or not: one word for machines, one sentence for people."""

from __future__ import annotations

from enum import StrEnum


class Because(StrEnum):
    """Reason why an action is asked for."""

    PRIMARY_UNHEALTHY = "PrimaryUnhealthy"
    PRIMARY_HEALTHY = "PrimaryHealthy"
    SECONDARIES_CHANGED = "SecondariesChanged"
    RETURNING = "Returning"
    ALL_DOWN = "AllDown"
    DRIFT = "Drift"
    TRIAL = "Trial"
    TRIAL_FAILED = "TrialFailed"
    BY_HAND = "ByHand"
    TARGET_CHANGED = "TargetChanged"
    ZONE_UNHEALTHY = "ZoneUnhealthy"
    ZONE_RECOVERED = "ZoneRecovered"
    COMMANDED = "Commanded"
    PRACTICE = "Practice"
    ABORTED = "Aborted"
    NODES_JOINED = "NodesJoined"
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"
    CLUSTER_TAINTED = "ClusterTainted"
    WORKLOAD_UNHEALTHY = "WorkloadUnhealthy"
    TOLERATION_ELAPSED = "TolerationElapsed"
    REPLACEMENT_HEALTHY = "ReplacementHealthy"
    GRACE_ELAPSED = "GraceElapsed"
    RECOVERED = "Recovered"
    RULE_CHANGED = "RuleChanged"
    PRIMARY_CHANGED = "PrimaryChanged"


class Held(StrEnum):
    """Reason why nothing is done although an action may be necessary."""

    NO_HEALTHY_SECONDARY = "NoHealthySecondary"
    UNKNOWN_PRIMARY = "UnknownPrimary"
    TARGET_UNKNOWN = "TargetUnknown"
    ROUTE_NOT_FOUND = "RouteNotFound"
    ROUTE_UNUSABLE = "RouteUnusable"
    CATCHING_UP = "CatchingUp"
    PAUSED = "Paused"
    ACTION_FAILED = "ActionFailed"
    ALL_ZERO = "AllZero"
    CONTROL_PLANE_UNREACHABLE = "ControlPlaneUnreachable"
    ZONES_UNKNOWN = "ZonesUnknown"
    ZONE_NOT_FOUND = "ZoneNotFound"
    SINGLE_ZONE = "SingleZone"
    MAX_ISOLATED_ZONES = "MaxIsolatedZones"
    ANOTHER_IN_PROGRESS = "AnotherInProgress"
    COOLDOWN = "Cooldown"
    WIDESPREAD_FAILURE = "WidespreadFailure"
    TOLERATION_NOT_ELAPSED = "TolerationNotElapsed"
    ONE_SOURCE_ONLY = "OneSourceOnly"
    SINGLE_ZONE_SERVICES = "SingleZoneServices"
    QUORUM_AT_RISK = "QuorumAtRisk"
    REMAINING_ZONES_UNHEALTHY = "RemainingZonesUnhealthy"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    CHANGE_REFUSED = "ChangeRefused"
    START_EXPIRED = "StartExpired"
    STEP_FAILED = "StepFailed"
    RETRIES_EXHAUSTED = "RetriesExhausted"
    ISOLATION_EXPIRED = "IsolationExpired"
    ZONE_NOT_RECOVERED = "ZoneNotRecovered"
    IN_BLOCKED_WINDOW = "InBlockedWindow"
    ISOLATION_STANDS = "IsolationStands"
    ISOLATION_FOUND = "IsolationFound"
    MOVE_FOUND = "MoveFound"
    PRACTICE_BLOCKED = "PracticeBlocked"
    NO_LANDING_PLACE = "NoLandingPlace"
    GRACE_EXPIRED = "GraceExpired"
    LAST_HEALTHY_COPY = "LastHealthyCopy"
    PRECONDITIONS_NOT_MET = "PreconditionsNotMet"
    WORKLOAD_NOT_FOUND = "WorkloadNotFound"
    POLICY_UNUSABLE = "PolicyUnusable"
    STATE_UNKNOWN = "StateUnknown"
    SCHEDULER_OVERRULED = "SchedulerOverruled"
    MAX_CONCURRENT = "MaxConcurrent"
    RATE_LIMITED = "RateLimited"
    DISRUPTED = "Disrupted"
    AWAITING_GUARD = "AwaitingGuard"
    AWAITING_APPROVAL = "AwaitingApproval"
    APPROVAL_EXPIRED = "ApprovalExpired"
    REJECTED = "Rejected"
    SOURCE_SILENT = "SourceSilent"
    LIST_DOUBTED = "ListDoubted"
    HEALTHY_NOW = "HealthyNow"
    BACKING_OFF = "BackingOff"
    DRIFTED_BY_HAND = "DriftedByHand"
    OVERRIDDEN = "Overridden"


SENTENCES: dict[Because | Held, str] = {
    Because.PRIMARY_UNHEALTHY: "the primary has been bad for tolerationSeconds and a secondary is ready",
    Because.PRIMARY_HEALTHY: "the primary is ready, and has been for recoverySeconds",
    Because.SECONDARIES_CHANGED: "the primary is still bad and the ready secondaries are others than before",
    Because.RETURNING: "the primary is ready again and gets its share step by step",
    Because.ALL_DOWN: "no backend is ready, and onAllDown says what to write",
    Because.DRIFT: "the weights are not those that were requested last: another writer has changed them",
    Because.TRIAL: "the wait is over, and without traffic the health is not known: the primary gets a small part of it",
    Because.TRIAL_FAILED: "the trial of the primary brought no proof that it is well: traffic leaves it again",
    Because.BY_HAND: "a person has moved the traffic by a command",
    Because.TARGET_CHANGED: "the target's health has changed, and has stayed so for its window",
    Because.ZONE_UNHEALTHY: "one zone alone has been bad for tolerationSeconds, and two signals say so",
    Because.ZONE_RECOVERED: "the zone has been healthy for recoverySeconds, and two signals say so",
    Because.COMMANDED: "a person has asked for it",
    Because.PRACTICE: "the rule's practice schedule asks for it",
    Because.ABORTED: "the isolation is no longer wanted: what was begun is undone, last first",
    Because.NODES_JOINED: "nodes have joined the isolated zone",
    Because.CLUSTER_UNHEALTHY: "the cluster has been Unhealthy, or Unknown, for as long as the policy tolerates it",
    Because.CLUSTER_TAINTED: "the cluster has a NoExecute taint, for longer than the policy tolerates it",
    Because.WORKLOAD_UNHEALTHY: "the workload's copy in this cluster has been bad for tolerationSeconds",
    Because.TOLERATION_ELAPSED: "what the policy tolerates is over, and a landing place is there",
    Because.REPLACEMENT_HEALTHY: "all copies that stay are Healthy, seen since they were placed",
    Because.GRACE_ELAPSED: "the grace period is over: not all new copies are Healthy, and the old one is not the last",
    Because.RULE_CHANGED: "the rule or its policy says something else now",
    Because.PRIMARY_CHANGED: "the route, or the rule, names another primary than before",
    Because.RECOVERED: "what it was left for is good again, and has been for recoverySeconds",
    Held.NO_HEALTHY_SECONDARY: "the primary is bad and no secondary is ready: traffic stays where it is",
    Held.UNKNOWN_PRIMARY: "the primary is none of the route's backends",
    Held.TARGET_UNKNOWN: "a target's health is Unknown: its window waits",
    Held.ROUTE_NOT_FOUND: "the route does not exist in its cluster, or has not been seen there yet",
    Held.ROUTE_UNUSABLE: "the route exists and cannot be used as it is",
    Held.CATCHING_UP: "a window is over, but older facts are still unread",
    Held.PAUSED: "the rule is paused",
    Held.ACTION_FAILED: "the action could not be carried out, and is tried again",
    Held.ALL_ZERO: "the route would be left with all weights zero",
    Held.CONTROL_PLANE_UNREACHABLE: "the cluster's API server cannot be asked, so nothing is known of it",
    Held.ZONES_UNKNOWN: "no inventory of the cluster's zones was heard: what the others can carry is not known",
    Held.ZONE_NOT_FOUND: "no node carries this zone, or the rule does not name it",
    Held.SINGLE_ZONE: "the cluster has no other zone with nodes",
    Held.MAX_ISOLATED_ZONES: "another zone is isolated already",
    Held.ANOTHER_IN_PROGRESS: "an operation on another zone is in progress",
    Held.COOLDOWN: "the last action is too recent",
    Held.WIDESPREAD_FAILURE: "too many others are bad too: the observation may be wrong, or nothing is left to move to",
    Held.TOLERATION_NOT_ELAPSED: "it has not been bad for tolerationSeconds yet",
    Held.ONE_SOURCE_ONLY: "only one signal says so, and two are needed",
    Held.SINGLE_ZONE_SERVICES: "services have all their copies in this zone",
    Held.QUORUM_AT_RISK: "no majority of the members would be left",
    Held.REMAINING_ZONES_UNHEALTHY: "too few of the remaining nodes are healthy",
    Held.INSUFFICIENT_CAPACITY: "the remaining nodes could not carry what is needed",
    Held.CHANGE_REFUSED: "a command was not followed: it contradicts the current state, or what is known",
    Held.START_EXPIRED: "the guards did not let the isolation start in time, and nothing was touched",
    Held.STEP_FAILED: "a step of the isolation was not done in time; what is done stays done, and it is tried again",
    Held.RETRIES_EXHAUSTED: "a step of the isolation was not done in any of its tries: a person has to say go on",
    Held.ISOLATION_EXPIRED: "the isolation lasts longer than expirySeconds: a person should look",
    Held.ZONE_NOT_RECOVERED: "the zone is not proven healthy by two signals for recoverySeconds: it stays closed",
    Held.IN_BLOCKED_WINDOW: "nothing starts by itself in this window",
    Held.ISOLATION_STANDS: "there is an isolation that the rule's mode neither continues nor undoes",
    Held.MOVE_FOUND: "the copies say that they are in a move of this rule, and the record of it was lost",
    Held.ISOLATION_FOUND: "its nodes say that this rule has isolated the zone, and the record of it was lost",
    Held.PRACTICE_BLOCKED: "a practice run was due and something forbids it: it is skipped",
    Held.NO_LANDING_PLACE: "no cluster could take the workload, so it is not evicted",
    Held.GRACE_EXPIRED: "the grace period is over and not all new copies are Healthy: what would go stays",
    Held.LAST_HEALTHY_COPY: "the old copy is the last Healthy one: it stays",
    Held.PRECONDITIONS_NOT_MET: "the copy is bad for long enough, but the policy's preConditions do not hold yet",
    Held.WORKLOAD_NOT_FOUND: "the workload is gone, or no cluster has a copy of it, while it was leaving one",
    Held.POLICY_UNUSABLE: "the policy that governs the workload cannot be carried out as it is",
    Held.STATE_UNKNOWN: "statePreservation asks for values of the old copy's status that are not there, or no labels",
    Held.SCHEDULER_OVERRULED: "Karmada's scheduler has placed the workload elsewhere than asked: its word is the last",
    Held.MAX_CONCURRENT: "as many actions as maxConcurrent allows are in flight: it waits for its turn",
    Held.RATE_LIMITED: "actions begin no faster than ratePerSecond: it waits for its turn",
    Held.DISRUPTED: "many peers are bad: actions slow down, and stop where all are",
    Held.AWAITING_GUARD: "a guard that is shared has not answered yet, and is asked again",
    Held.AWAITING_APPROVAL: "a person has to approve it",
    Held.LIST_DOUBTED: "a list of an API server lacks most of what was there a moment ago: it is believed after three "
    "lists over 30 s, and what it lacks is not seen until then",
    Held.SOURCE_SILENT: "a window is over, and its source does not say how the target is now: it was asked to look",
    Held.HEALTHY_NOW: "a window is over, and what the signals say now contradicts the act",
    Held.BACKING_OFF: "what fails soon after its return, in a trial, or in place of what failed waits longer each time",
    Held.DRIFTED_BY_HAND: "another writer has changed the weights, and onDrift: Hold leaves them until released",
    Held.OVERRIDDEN: "a person's command is in effect: the rule changes nothing by itself",
    Held.APPROVAL_EXPIRED: "it was not approved in time: it is requested again, and a late approval of the same counts",
    Held.REJECTED: "it was rejected: the same is not requested again before the time of the rejection is over",
}


def sentence(reason: str) -> str:
    """Give the sentence of a reason's word; empty where it is none of ours."""
    return next((text for known, text in SENTENCES.items() if known == reason), "")


REFUSALS = frozenset({"Forbidden", "RouteNotFound", "Conflict", "Invalid"})
"""Reasons of the outcome of an action that a server, or a proxy before it, has refused: answers 401 and 403, 404, 409,
and the others of 4xx that are no sign of load."""
