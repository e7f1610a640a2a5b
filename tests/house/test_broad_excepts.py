"""Each `except Exception` says beside it why nothing narrower is right there: a mistake that is caught is not seen."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BROAD = re.compile(r"^\s*except(?: (?:Base)?Exception(?: as \w+)?| \(.*\bException\b.*)?:(?P<rest>.*)$")


def without_reason(text: str) -> list[int]:
    """The numbers of the lines that catch everything and say nothing."""
    found = ((number, _BROAD.match(line)) for number, line in enumerate(text.splitlines(), start=1))
    return [number for number, broad in found if broad and "# " not in re.sub(r"# noqa: \S+$", "", broad["rest"])]


def test_each_broad_except_has_its_reason_beside_it() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("bus", "rules", "reactor", "tests", "benchmarks", "scripts")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number in without_reason(path.read_text("utf-8"))
    ]
    assert silent == []


def test_one_without_a_reason_is_found() -> None:
    text = "try:\n    pass\nexcept Exception:\n    pass\nexcept BaseException as error:  # noqa: BLE001\n    pass\n"
    assert without_reason(text + "except:\n    pass\nexcept Exception:  # it is given back\n    pass\n") == [3, 5, 7]
