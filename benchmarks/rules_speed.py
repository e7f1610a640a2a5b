"""The pure core: loading, deciding, simulating, in CPU time. Beside each, what the bare library takes for its part."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import yaml

from benchmarks.measure import Result
from bus.messages import Backend, Health, Observation, Route
from rules import loader
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.history import load_history
from rules.rehearsal.simulation import at
from rules.rehearsal.simulator import simulate as simulated

RULE = """  - name: r{n}
    kind: TrafficFailover
    mode: Enforce
    route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
    primary: app{n}
    backends:
      - {{service: app{n}, target: service/east/shop/app{n}}}
      - {{service: app{n}-west, target: service/west/shop/app{n}, tier: 1}}
    tolerationSeconds: 10
    recoverySeconds: 60
"""


def rule_file(count: int) -> str:
    """A rule file with this many rules."""
    return "apiVersion: reactor/v1\nrules:\n" + "".join(RULE.format(n=n) for n in range(count))


def load_rules() -> Result:
    """1,000 rules from text to models, with every check."""
    text = rule_file(1000)
    began = time.process_time()
    loader.load_rules([("bench.yaml", text)])
    ours = time.process_time() - began
    began = time.process_time()
    yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - the safe loader, in C
    bare = time.process_time() - began
    figures = {
        "rules": 1000,
        "seconds": round(ours, 3),
        "yaml_alone_seconds": round(bare, 3),
        "ratio": round(ours / bare, 1),
    }
    return Result("load", "1,000 rules loaded and checked", figures, {"seconds": "< 1"})


def decide() -> Result:
    """Observations folded in and decided on, one at a time, over 1,000 groups."""
    group_store = GroupStore(Routing(loader.load_rules([("bench.yaml", rule_file(1000))]).rules))
    for n in range(1000):
        backends = (Backend(service=f"app{n}", weight=1), Backend(service=f"app{n}-west", weight=0))
        route = Route(
            cluster="east", kind="TrafficSplit", namespace="shop", name=f"app{n}", backends=backends, observed_at=at(0)
        )
        group_store.apply([route], at(0))
    events = [
        Observation(
            target=f"service/{'east' if n % 2 else 'west'}/shop/app{n % 1000}",
            status=Health.HEALTHY if n % 7 else Health.UNHEALTHY,
            observed_at=at(1) + timedelta(milliseconds=n),
            stale_seconds=90,
        )
        for n in range(20_000)
    ]
    began = time.process_time()
    for event in events:
        group_store.apply([event], event.observed_at)
    took = time.process_time() - began
    figures = {"events": len(events), "microseconds_per_event": round(took / len(events) * 1e6, 1)}
    return Result("decide", "one observation decided on, 1,000 groups", figures, {"microseconds_per_event": "≤ 100"})


def simulate() -> Result:
    """A history of 10,000 events, from JSON lines to JSON lines."""
    rules = loader.load_rules([("bench.yaml", rule_file(100))]).rules
    lines = [
        json.dumps(
            {
                "at": n / 10,
                "observe": {
                    "target": f"service/{'east' if n % 3 else 'west'}/shop/app{n % 100}",
                    "status": "Unhealthy" if n // 100 % 5 == 2 else "Healthy",
                },
            }
        )
        for n in range(10_000)
    ]
    began = time.process_time()
    out = list(simulated(rules, load_history(lines, "bench.jsonl").events, until=1100))
    took = time.process_time() - began
    began = time.process_time()
    for line in lines:
        json.loads(line)
    bare = time.process_time() - began
    figures = {
        "events": len(lines), "lines_out": len(out), "seconds": round(took, 2),
        "json_alone_seconds": round(bare, 3), "ratio": round(took / bare, 1),
    }  # fmt: skip
    return Result("simulate", "a history of 10,000 events", figures, {"seconds": "< 5"})
