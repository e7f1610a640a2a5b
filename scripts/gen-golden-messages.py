#!/usr/bin/env python3
"""Write one message of each type, every field filled, as this code encodes it: tests/golden/messages/*.json.

Run it before a release whose messages differ, and only then: later code has to read the files of every release.
A type that has a file keeps it, and a type whose fields have changed since gets a second one: `--suffix 0.2.0`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from bus.envelope import MESSAGES, encode
from tests.golden_files import bare_messages
from tests.unit.bus.test_envelope import NOON, messages

FOLDER = ROOT / "tests" / "golden" / "messages"
EXAMPLES = 300
LARGEST = 20_000


def main() -> None:
    """Write the files that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suffix", default="", help="of the file names, such as the release")
    suffix = parser.parse_args().suffix
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind in MESSAGES:
        path = FOLDER / f"{kind.__name__}{suffix and '-' + suffix}.json"
        if not path.exists():
            body = encode(fullest(kind), id="some/id", source="/reactor/test", time=NOON)
            path.write_text(json.dumps(json.loads(body), indent=1, ensure_ascii=True) + "\n", "utf-8")
    for bare in bare_messages():  # as they travel: without an envelope
        path = FOLDER / f"{bare.__name__}{suffix and '-' + suffix}.json"
        if not path.exists():
            path.write_text(fullest(bare).model_dump_json(indent=1) + "\n", "utf-8")


def fullest(kind: type[Any]) -> Any:
    """Give the example in which most is filled."""
    found: list[Any] = []

    @seeded(MESSAGES.index(kind) if kind in MESSAGES else 0)
    @settings(
        max_examples=EXAMPLES, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=st.data())
    def collect(data: st.DataObject) -> None:
        found.append(data.draw(messages(kind)))

    collect()
    small = [one for one in found if len(one.model_dump_json()) < LARGEST]
    return max(small, key=lambda one: (_filled(one.model_dump()), one.model_dump_json()))


def _filled(value: object) -> int:
    if isinstance(value, dict):
        return sum(_filled(one) for one in value.values()) + bool(value)
    if isinstance(value, list | tuple):
        return sum(_filled(one) for one in value) + bool(value)
    return value not in (None, "", 0)


if __name__ == "__main__":
    main()
