"""Layers that import-linter cannot check: users of the engine have imported the catalog, which registers the kinds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PLACED = {"bus", "rules", "reactor", "reactor.actions", "reactor.sources"}
"""Packages in whose layers each module and folder has its place."""
DECIDING = {
    f"rules.engine.{name}"
    for name in ("decide", "groups", "group_codec", "outbox", "retention", "routing", "subscriptions")
}
"""Modules of the engine that ask for a rule's kind."""
GIVEN = {
    "reactor.decide.partition_context",
    "reactor.decide.questions",
    "reactor.route.publisher",
    "reactor.views.traffic_plan",
}
"""Are given a Routing, groups or decisions, which cannot be made without the kinds."""


def test_a_module_that_uses_the_engine_has_imported_the_catalog_of_kinds() -> None:
    """Else the first decision, or the first stored group that is read, would fail."""
    graph = grimp.build_graph("bus", "rules", "reactor", cache_dir=None, exclude_type_checking_imports=True)

    def imported(module: str) -> set[str]:
        seen: set[str] = set()
        rest = [module]
        while rest:
            one = rest.pop()
            if one in seen:
                continue
            seen.add(one)
            parts = one.split(".")
            rest += [".".join(parts[:count]) for count in range(1, len(parts))]  # Python imports packages first
            rest += graph.find_modules_directly_imported_by(one)
        return seen

    using = {
        module
        for module in graph.modules
        if not module.startswith("rules.engine") and DECIDING & graph.find_modules_directly_imported_by(module)
    }
    assert {module for module in using if "rules.catalog" not in imported(module)} == GIVEN


def test_a_new_package_has_to_be_given_its_place() -> None:
    """Else it could import all there is: import-linter says nothing of what no contract names."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    assert {place for one in contracts if one.get("exhaustive") for place in one["containers"]} == PLACED
    assert "reactor.workbench.*" in {place for one in contracts for place in one.get("modules", ())}
