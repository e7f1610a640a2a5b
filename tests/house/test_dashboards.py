"""The Grafana dashboards: what scripts/gen-dashboards.py makes of the registry, and a place for each metric."""

from __future__ import annotations

import importlib.util
import json
import sys
from itertools import combinations
from typing import Any

import promql_parser
import pytest

from tests.house.test_deploy_files import DEPLOY, ROOT

HINT = "run: .venv/bin/python scripts/gen-dashboards.py"
FILES = sorted((DEPLOY / "grafana").glob("*.json"))


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("gen_dashboards", ROOT / "scripts" / "gen-dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_they_are_what_the_script_writes(generator: Any) -> None:
    written = generator.files()
    assert sorted(written) == FILES, HINT
    for path, text in written.items():
        assert path.read_text() == text, HINT


def test_each_metric_has_a_place(generator: Any) -> None:
    shown = {panel.metric for one in generator.DASHBOARDS.values() for row in one.rows.values() for panel in row}
    assert shown == generator.metrics().keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_grafana_can_lay_it_out_and_prometheus_can_read_it(file: Any) -> None:
    dashboard = json.loads(file.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    for panel in panels:
        for target in panel.get("targets", ()):
            promql_parser.parse(target["expr"].replace("$__rate_interval", "1m"))
