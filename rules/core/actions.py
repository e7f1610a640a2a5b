"""What actions do, in words for people."""

from __future__ import annotations

from bus.messages import Action, CancelEviction, Evict, Notify, Place, Purge, SetTaints, SetWeights, ZoneStep
from bus.messages.placements import placed


def in_words(action: Action) -> str:
    """Say what an action does, in one line for people."""
    match action:
        case SetWeights():
            weights = ", ".join(f"{name}={weight}" for name, weight in action.weights.items())
            return f"set {action.object} to {weights}"
        case Place():
            return f"place {action.object} on {placed(action.clusters)}"
        case Evict():
            return f"evict {action.object} from {action.from_} ({action.purge_mode})"
        case Purge():
            return f"purge {action.object} from {action.from_}"
        case CancelEviction():
            return f"keep {action.object} on {action.from_} after all"
        case SetTaints():
            keys = ", ".join(f"{taint.key}:{taint.effect}" for taint in action.taints) or "none"
            return f"set the taints of {action.object} to {keys}"
        case ZoneStep():
            return f"{'undo' if action.undo else 'do'} {action.step} of {action.phase} on {action.object}"
        case Notify():
            return action.message
