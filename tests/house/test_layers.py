"""Layers that import-linter cannot check: users of the engine have imported the catalog, which registers the kinds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).parents[2]
PLACED = {
    "bus", "rules", "rules.rehearsal", "rules.rehearsal.world", "reactor", "reactor.actions", "reactor.demo",
    "reactor.sources",
}  # fmt: skip
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


def contracts() -> list[dict[str, Any]]:
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"])


def unplaced(folders: Iterable[str], those: Sequence[Mapping[str, Any]]) -> list[str]:
    """Folders that no contract gives a layer, and that are not among independent siblings."""
    words = re.compile(r"[\w.]+")
    layered = {
        f"{above}.{name}"
        for one in those
        for above in one.get("containers", ())
        for line in one["layers"]
        for name in words.findall(line)
    }
    siblings = {module.removesuffix(".*") for one in those for module in one.get("modules", ()) if module[-1] == "*"}
    return [one for one in folders if one not in layered and one.rpartition(".")[0] not in siblings]


def test_a_new_package_has_to_be_given_its_place() -> None:
    """Else it could import all there is: import-linter says nothing of what no contract names."""
    assert {place for one in contracts() if one.get("exhaustive") for place in one["containers"]} == PLACED
    files = (path for name in ("bus", "rules", "reactor") for path in (ROOT / name).glob("*/**/__init__.py"))
    assert unplaced((".".join(path.parent.relative_to(ROOT).parts) for path in files), contracts()) == []


def test_a_package_without_a_place_is_found() -> None:
    those = [{"containers": ["a"], "layers": ["b | c", "d"]}, {"modules": ["a.c.*", "a.d.e"]}]
    assert unplaced(["a.b", "a.c", "a.c.x", "a.d", "a.d.e", "a.f"], those) == ["a.d.e", "a.f"]


def test_the_emulated_api_server_knows_no_other_package() -> None:
    """It takes the place of a server of others: code that both share would hide what they differ in."""
    (one,) = [one for one in contracts() if one.get("source_modules") == ["reactor.demo.kube"]]
    parts = {f"reactor.{path.parent.name}" for path in (ROOT / "reactor").glob("*/__init__.py")}
    assert {"bus", "rules", *parts} - {*one["forbidden_modules"]} == {"reactor.demo"}


def test_no_module_is_at_the_root_of_the_reactor() -> None:
    assert [path.name for path in (ROOT / "reactor").glob("*.py")] == ["__init__.py"]
