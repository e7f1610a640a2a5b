"""Scenario of one run: as data, so that it can be drawn from a seed, shortened, and kept in a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from reactor.audit.spans import Span

Kind = Literal[
    "crash", "pause", "cut", "rough", "bus-down", "bus-wiped", "api-rough", "unacked", "all-gone", "api-down",
]  # fmt: skip
Roles = Literal["all", "decider", "executor"]

OBJECTS = ("plans", "zones", "clusters", "workloads")
"""Kinds of things that may be acted on, as a scenario calls them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One route, zone, cluster or workload, and its outages. Times are seconds from the start."""

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
    """Length: until the process is started again, goes on, or the link works."""
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
class PausedRule:
    """A person pauses one rule for some time."""

    name: str
    """Of the route or zone, and so of its rule."""
    begin: float
    end: float
    """Second at which it is resumed; later where the bus takes neither command before."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to what a rule in mode Approve asks for."""

    name: str
    """Of the object, and so of its rule."""
    look: float
    """Second from which on the person looks for a request."""
    after: float
    """Seconds from when the request is seen to the answer."""
    yes: bool
    for_seconds: float = 0.0
    """Of a no: how long the same is not asked for again."""
    named: bool = True
    """True if it names the request that was shown; otherwise it counts for whatever was asked for last."""


OrderKind = Literal["isolate", "back", "force-back", "retry"]


@dataclass(frozen=True, slots=True)
class Order:
    """A person's command to a zone."""

    name: str
    """Of the zone's cluster, and so of its rule."""
    at: float
    what: OrderKind


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run."""

    seed: int
    reactors: tuple[tuple[str, Roles], ...]
    plans: tuple[Plan, ...]
    faults: tuple[Fault, ...]
    shuffled: bool = False
    """True if callbacks that are ready together run in any order."""
    skew: float = 0.0
    """Largest error of each process's wall clock in seconds."""
    stamped: bool = True
    """True if objects carry the decision that they follow; otherwise the executors' intents are all there is."""
    edits: tuple[Edit, ...] = ()
    """In the order of time."""
    zones: tuple[Plan, ...] = ()
    """Each is a zone of a cluster of its own."""
    pauses: tuple[PausedRule, ...] = ()
    """One at a time for each rule."""
    clusters: tuple[Plan, ...] = ()
    """Each is tainted while it is bad."""
    workloads: tuple[Plan, ...] = ()
    """Each is bad where it runs first, and moves for good."""
    expires: float | None = None
    """Seconds for which a request for approval is good; None: no rule asks."""
    answers: tuple[Answer, ...] = ()
    orders: tuple[Order, ...] = ()

    @property
    def objects(self) -> tuple[Plan, ...]:
        """All that may be acted on."""
        return (*self.plans, *self.zones, *self.clusters, *self.workloads)

    def tolerations(self, moment: float) -> dict[str, float]:
        """Give what the files say at this second, by the routes that have a rule."""
        said: dict[str, float | None] = {plan.name: plan.toleration for plan in self.plans}
        said |= {edit.name: edit.toleration for edit in self.edits if edit.at <= moment}
        return {name: toleration for name, toleration in said.items() if toleration is not None}


def dump(scenario: Scenario) -> dict[str, Any]:
    """Give it as JSON takes it; an outage without end ends at null."""
    document = asdict(scenario)
    for plan in (plan for kind in OBJECTS for plan in document[kind]):
        plan["outages"] = [[span["begin"], None if span["end"] == inf else span["end"]] for span in plan["outages"]]
    return document


def load(document: dict[str, Any]) -> Scenario:
    """Read one back."""
    objects = {kind: tuple(_plan(dict(plan)) for plan in document.get(kind, ())) for kind in OBJECTS}
    faults = tuple(Fault(**fault) for fault in document["faults"])
    reactors = tuple((name, roles) for name, roles in document["reactors"])
    edits = tuple(Edit(**edit) for edit in document.get("edits", ()))
    pauses = tuple(PausedRule(**pause) for pause in document.get("pauses", ()))
    answers = tuple(Answer(**answer) for answer in document.get("answers", ()))
    orders = tuple(Order(**order) for order in document.get("orders", ()))
    changed: dict[str, Any] = {**objects, "faults": faults, "reactors": reactors, "edits": edits}
    changed |= {"pauses": pauses, "answers": answers, "orders": orders}
    return Scenario(**{**document, **changed})


def _plan(plan: dict[str, Any]) -> Plan:
    outages = tuple(Span(begin, inf if end is None else end) for begin, end in plan.pop("outages"))
    return Plan(**plan, outages=outages)
