"""Write deploy/helm/alert-reactor/README.md: the chart's values, from values.schema.json and values.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[1] / "deploy/helm/alert-reactor"
HEAD = """<!-- Written by scripts/gen-helm-values.py: change values.schema.json and values.yaml, not this page. -->

# Helm chart of alert-reactor

How to install it: [docs/how-to/install-in-kubernetes.md](../../../docs/how-to/install-in-kubernetes.md).

| value | default | |
| --- | --- | --- |
"""


def page() -> str:
    """Give the page."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))["properties"]
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    rows = [f"| `{key}` | {_default(value)} | {schema[key]['description']} |" for key, value in values.items()]
    return HEAD + "\n".join(rows) + "\n"


def _default(value: Any) -> str:
    text = json.dumps(value)
    return f"`{text}`" if len(text) <= 80 else "see values.yaml"


if __name__ == "__main__":
    (CHART / "README.md").write_text(page(), "utf-8")
