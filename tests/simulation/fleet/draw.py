"""From a seed to a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from random import Random

from reactor.audit.spans import Span
from tests.simulation.fleet.scenario import Fault, Kind, Plan, Roles, Scenario

CALM = 8.0
"""Seconds before the first outage and the first fault: all processes have seen all targets healthy by then."""
FAULTS_UNTIL = 40.0
SCRIPT_UNTIL = 60.0
SKEW = 0.1
PUBLISH = "publish "
"""Prefix of the names of calls that publish."""
TOLERATIONS = (1.0, 3.0, 6.0, 9.0)
RECOVERIES = (0.5, 2.0)
FLEETS: tuple[tuple[tuple[str, Roles], ...], ...] = (
    (("a", "all"),),
    (("a", "all"), ("b", "all")),
    (("a", "all"), ("b", "all"), ("c", "all")),
    (("a", "decider"), ("b", "decider"), ("x", "executor"), ("y", "executor")),
    (("a", "decider"), ("b", "decider"), ("c", "decider"), ("x", "executor")),
)
KINDS: tuple[tuple[Kind, int], ...] = (
    ("crash", 5), ("pause", 4), ("cut", 3), ("rough", 3), ("bus-down", 1), ("api-rough", 2),
)  # fmt: skip


def draw(seed: int) -> Scenario:
    """Give the scenario of this seed; every eighth has no faults at all."""
    random = Random(f"scenario {seed}")
    reactors = random.choice(FLEETS)
    plans = tuple(_plan(random, number) for number in range(random.randint(1, 4)))
    count = 0 if seed % 8 == 0 else random.randint(1, 5)
    faults = sorted((_fault(random, reactors) for _ in range(count)), key=lambda fault: fault.at)
    return Scenario(seed, reactors, plans, tuple(faults), shuffled=seed % 2 == 1, skew=SKEW)


def crashing(seed: int) -> Scenario:
    """Give one in which deciders die again and again, also between storing what is owed and publishing it."""
    random = Random(f"crashing {seed}")
    names = [name for name, roles in FLEETS[-1] if roles == "decider"]
    moments = sorted(round(random.uniform(CALM, SCRIPT_UNTIL - 5), 3) for _ in range(12))
    faults = tuple(
        Fault("crash", at, 1.0, random.choice(names), random.randint(1, 12), of=random.choice(("", PUBLISH)))
        for at in moments
    )  # fmt: skip
    plans = tuple(_plan(random, number) for number in range(6))
    return Scenario(seed, FLEETS[-1], plans, faults)


def pausing(seed: int) -> Scenario:
    """Give one in which deciders are suspended over a takeover, about to publish, and then go on with it."""
    random = Random(f"pausing {seed}")
    names = [name for name, roles in FLEETS[-1] if roles == "decider"]
    moments = sorted(round(random.uniform(CALM, SCRIPT_UNTIL - 15), 3) for _ in range(3))
    faults = tuple(Fault("pause", at, 15.0, random.choice(names), of=PUBLISH) for at in moments)
    plans = tuple(_plan(random, number) for number in range(6))
    return Scenario(seed, FLEETS[-1], plans, faults)


def unacknowledged(seed: int) -> Scenario:
    """Give one in which every action is given out again half a minute later, for objects that carry no stamps."""
    random = Random(f"unacknowledged {seed}")
    plans = tuple(_plan(random, number) for number in range(4))
    return Scenario(seed, FLEETS[1], plans, (Fault("unacked", CALM, SCRIPT_UNTIL),), stamped=False)


GONE: tuple[Kind, ...] = ("bus-down", "all-gone", "api-down")
SHARES = (0.5, 1.0, 2.0)
"""Of the toleration: something is away for less, about as long, or longer."""


APART = 6.0
"""Seconds within which all outages of a scenario begin."""


def struck(random: Random, seed: int, kinds: Sequence[Kind], at: float, toleration: float) -> list[Fault]:
    """Give an outage that begins at this second, its kind and length by the seed, and in some scenarios another one."""
    faults = [Fault(kinds[seed % len(kinds)], at, _length(random, seed // len(kinds), toleration), rate=1.0)]
    if random.random() < 0.4:
        begin = round(at + random.uniform(0, min(APART, faults[0].seconds)), 3)
        kind, number = random.choice(kinds), random.randrange(len(kinds) * len(SHARES))
        faults.append(Fault(kind, begin, _length(random, number // len(kinds), toleration), rate=1.0))
    return faults


def _length(random: Random, number: int, toleration: float) -> float:
    return round(SHARES[number % len(SHARES)] * toleration + random.uniform(-0.3, 0.8), 3)


def away(seed: int) -> Scenario:
    """Give one in which the bus, every process or the API server goes away and comes back while windows are open.

    One route recovers meanwhile, one recovers and fails again, one stays bad, one fails and recovers unseen.
    """
    random = Random(f"away {seed}")
    kind, share = GONE[seed % len(GONE)], SHARES[seed // len(GONE) % len(SHARES)]
    toleration, recovery = random.choice(TOLERATIONS[1:]), random.choice(RECOVERIES)
    length = round(share * toleration + random.uniform(-0.3, 0.8), 3)
    at = round(CALM + toleration + random.uniform(0, 2), 3)
    first = round(at - random.uniform(0.1, 0.95) * toleration, 3)
    end = at + length
    late = round(end + toleration + random.uniform(12, 16), 3)
    spells = (
        (Span(first, round(at + random.uniform(0.2, 0.95) * length, 3)),),
        (Span(first, round(at + length / 3, 3)), Span(round(at + 2 * length / 3, 3), late)),
        (Span(first, late),),
        (Span(round(at + length / 4, 3), round(at + 3 * length / 4, 3)),),
    )
    plans = tuple(Plan(f"route-{number}", toleration, recovery, one) for number, one in enumerate(spells))
    return Scenario(seed, random.choice(FLEETS), plans, (Fault(kind, at, length),), shuffled=seed % 2 == 1, skew=SKEW)


def _plan(random: Random, number: int) -> Plan:
    toleration, recovery = random.choice(TOLERATIONS), random.choice(RECOVERIES)
    return Plan(f"route-{number}", toleration, recovery, tuple(_outages(random, toleration, recovery)))


def _outages(random: Random, toleration: float, recovery: float) -> Iterator[Span]:
    """Flaps that end within the toleration, some in the last moment; outages beyond it; some without end."""
    at = CALM + random.uniform(0, 6)
    while at < SCRIPT_UNTIL:
        if random.random() < 0.5:
            length = toleration - random.choice((0.3, 0.5, 0.9)) * random.random() * toleration - 0.3
        else:
            length = toleration + random.uniform(3, 12)
        calm = random.choice((random.uniform(0.3, max(recovery, 0.4)), recovery + random.uniform(2, 12)))
        if at + length > SCRIPT_UNTIL:
            if random.random() < 0.5:
                yield Span(round(at, 3), inf)
            return
        if length > 0.3:  # else the source may not see it
            yield Span(round(at, 3), round(at + length, 3))
        at += max(length, 0) + calm


def _fault(random: Random, reactors: tuple[tuple[str, Roles], ...]) -> Fault:
    kinds, weights = zip(*KINDS, strict=True)
    kind: Kind = random.choices(kinds, weights)[0]
    names = [*(name for name, _ in reactors), "source"] if kind != "pause" else [name for name, _ in reactors]
    who = "" if kind in ("bus-down", "api-rough") or random.random() < 0.15 else random.choice(names)
    seconds = {
        "crash": random.uniform(0.1, 5), "pause": random.choice((2.0, 6.0, 11.0, 16.0)) * random.uniform(0.7, 1.2),
        "cut": random.choice((1.0, 5.0, 14.0)) * random.uniform(0.7, 1.2), "rough": random.uniform(2, 12),
        "bus-down": random.uniform(0.5, 8), "api-rough": random.uniform(2, 12),
    }[kind]  # fmt: skip
    return Fault(
        kind, round(random.uniform(CALM, FAULTS_UNTIL), 3), round(seconds, 3), who, random.randint(1, 40),
        random.random() < 0.5, random.random() < 0.5, round(random.uniform(0.05, 0.4), 2),
    )  # fmt: skip
