"""Why something is done, or is not: one word for machines, one sentence for people."""

from __future__ import annotations

from enum import StrEnum


class Because(StrEnum):
    """Why an action is asked for."""

    PRIMARY_UNHEALTHY = "PrimaryUnhealthy"
    PRIMARY_HEALTHY = "PrimaryHealthy"
    SECONDARIES_CHANGED = "SecondariesChanged"
    RETURNING = "Returning"
    ALL_DOWN = "AllDown"
    DRIFT = "Drift"
    TARGET_CHANGED = "TargetChanged"


class Held(StrEnum):
    """Why nothing is done although something may have to be."""

    NO_HEALTHY_SECONDARY = "NoHealthySecondary"
    UNKNOWN_PRIMARY = "UnknownPrimary"
    TARGET_UNKNOWN = "TargetUnknown"
    ROUTE_NOT_FOUND = "RouteNotFound"
    ROUTE_UNUSABLE = "RouteUnusable"
    CATCHING_UP = "CatchingUp"
    PAUSED = "Paused"
    ACTION_FAILED = "ActionFailed"
    ALL_ZERO = "AllZero"


SENTENCES: dict[Because | Held, str] = {
    Because.PRIMARY_UNHEALTHY: "the primary has been bad for tolerationSeconds and a secondary is ready",
    Because.PRIMARY_HEALTHY: "the primary is ready, and has been for recoverySeconds",
    Because.SECONDARIES_CHANGED: "the primary is still bad and the ready secondaries are others than before",
    Because.RETURNING: "the primary is ready again and gets its share step by step",
    Because.ALL_DOWN: "no backend is ready, and onAllDown says what to write",
    Because.DRIFT: "the weights stand otherwise than last asked: somebody else has written them",
    Because.TARGET_CHANGED: "the target's health has changed, and has stayed so for its window",
    Held.NO_HEALTHY_SECONDARY: "the primary is bad and no secondary is ready: traffic stays where it is",
    Held.UNKNOWN_PRIMARY: "the primary is none of the route's backends",
    Held.TARGET_UNKNOWN: "a target's health is Unknown: its window waits",
    Held.ROUTE_NOT_FOUND: "the route does not exist in its cluster, or has not been seen there yet",
    Held.ROUTE_UNUSABLE: "the route exists and cannot be used as it stands",
    Held.CATCHING_UP: "a window is over, but older facts are still unread",
    Held.PAUSED: "somebody has paused the rule",
    Held.ACTION_FAILED: "the action could not be carried out, and is tried again",
    Held.ALL_ZERO: "the route would be left with all weights zero",
}
