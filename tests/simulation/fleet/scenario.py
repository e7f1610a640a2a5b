"""What shall happen in one run: as data, so that it can be drawn from a seed, shortened, and kept in a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from reactor.audit.object_history import Span

Kind = Literal["crash", "pause", "cut", "rough", "bus-down", "api-rough", "unacked", "all-gone", "api-down"]
Roles = Literal["all", "decider", "executor"]


@dataclass(frozen=True, slots=True)
class Plan:
    """One route and its outages. Times are seconds from the start."""

    name: str
    toleration: float
    recovery: float
    outages: tuple[Span, ...]

    @property
    def second(self) -> str:
        """The secondary service."""
        return f"{self.name}-second"


@dataclass(frozen=True, slots=True)
class Fault:
    """One trouble."""

    kind: Kind
    at: float
    seconds: float
    """How long: until the process is started again, goes on, or the way is clear."""
    who: str = ""
    """The process; empty where it happens to all."""
    calls: int = 1
    """crash, pause: at which of the process's calls from then on."""
    late: bool = False
    """crash, pause: after the call was carried out, and before its answer comes back."""
    renamed: bool = False
    """crash: the next one has another name."""
    rate: float = 0.0
    """rough: how likely each call goes wrong."""
    of: str = ""
    """crash, pause: only calls count whose names begin so."""


@dataclass(frozen=True, slots=True)
class Edit:
    """From then on the files of all processes say something else of one route's rule."""

    at: float
    name: str
    """Of the route, and so of its rule."""
    toleration: float | None
    """In seconds; None: the rule is in no file."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run."""

    seed: int
    reactors: tuple[tuple[str, Roles], ...]
    plans: tuple[Plan, ...]
    faults: tuple[Fault, ...]
    shuffled: bool = False
    """Whether callbacks that are ready together run in any order."""
    skew: float = 0.0
    """How far, in seconds, each process's wall clock may be off."""
    stamped: bool = True
    """Whether objects carry the decision that they follow; where not, the executors' intents are all there is."""
    edits: tuple[Edit, ...] = ()
    """In the order of time."""

    def tolerations(self, moment: float) -> dict[str, float]:
        """Give what the files say at this second, by the routes that have a rule."""
        said: dict[str, float | None] = {plan.name: plan.toleration for plan in self.plans}
        said |= {edit.name: edit.toleration for edit in self.edits if edit.at <= moment}
        return {name: toleration for name, toleration in said.items() if toleration is not None}


def dump(scenario: Scenario) -> dict[str, Any]:
    """Give it as JSON takes it; an outage without end ends at null."""
    document = asdict(scenario)
    for plan in document["plans"]:
        plan["outages"] = [[span["begin"], None if span["end"] == inf else span["end"]] for span in plan["outages"]]
    return document


def load(document: dict[str, Any]) -> Scenario:
    """Read one back."""
    plans = tuple(_plan(dict(plan)) for plan in document["plans"])
    faults = tuple(Fault(**fault) for fault in document["faults"])
    reactors = tuple((name, roles) for name, roles in document["reactors"])
    edits = tuple(Edit(**edit) for edit in document.get("edits", ()))
    return Scenario(**{**document, "plans": plans, "faults": faults, "reactors": reactors, "edits": edits})


def _plan(plan: dict[str, Any]) -> Plan:
    outages = tuple(Span(begin, inf if end is None else end) for begin, end in plan.pop("outages"))
    return Plan(**plan, outages=outages)
