"""Each exception has its reason beside it: an `except Exception` says why nothing narrower is right there, as a mistake
that is caught is not seen, and a `noqa` of the product why the linter is wrong."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BROAD = re.compile(r"^\s*except(?: (?:Base)?Exception(?: as \w+)?| \(.*\bException\b.*)?:(?P<rest>.*)$")
_NOQA = re.compile(r"# noqa(?P<codes>: [A-Z]+\d+(?:, ?[A-Z]+\d+)*)?(?P<rest>.*)$")
_IGNORE = re.compile(r"# type: ignore(?P<code>\[[a-z-]+\])?")


def unexplained(text: str) -> list[int]:
    """The lines that switch a check off and say neither which nor, of the linter, why: there or in a comment above."""
    found, above = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        noqa, ignore = _NOQA.search(line), _IGNORE.search(line)
        told = above.lstrip().startswith("# ") or (noqa and noqa["rest"].lstrip().startswith("-"))
        if (noqa and not (noqa["codes"] and told)) or (ignore and not ignore["code"]):
            found.append(number)
        above = line
    return found


def test_each_check_that_is_switched_off_has_its_reason_beside_it() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("bus", "rules", "reactor")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number in unexplained(path.read_text("utf-8"))
    ]
    assert silent == []


def test_a_check_that_is_switched_off_without_a_reason_is_found() -> None:
    text = "a = 1  # noqa: S105\nb = 1  # noqa: S105 - no password\n# No loop is as fast.\nexec(c)  # noqa: S102\n"
    assert unexplained(text + "\nd()  # noqa\ne()  # type: ignore\nf()  # type: ignore[no-untyped-call]\n") == [1, 6, 7]


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
