"""Each exception has its reason beside it: an `except Exception` says why nothing narrower is right there, as a mistake
that is caught is not seen, a `noqa` why the linter is wrong, and a `type: ignore` of the product why the type checker
is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("bus", "rules", "reactor")
_BROAD = re.compile(r"^\s*except(?: (?:Base)?Exception(?: as \w+)?| \(.*\bException\b.*)?:(?P<rest>.*)$")
_NOQA = re.compile(r"# noqa(?P<codes>: [A-Z]+\d+(?:, ?[A-Z]+\d+)*)?(?P<rest>.*)$")
_IGNORE = re.compile(r"# type: ignore(?P<code>\[[a-z, -]+\])?(?P<why>\s+# (?!fmt:)\S)?")


def unexplained(text: str, *, typed: bool = True) -> list[int]:
    """The lines that switch a check off and do not say which and why: there or, of the linter, in a comment above."""
    found, above = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        noqa, ignore = _NOQA.search(line), _IGNORE.search(line)
        told = above.lstrip().startswith("# ") or (noqa and noqa["rest"].lstrip().startswith("-"))
        if (noqa and not (noqa["codes"] and told)) or (
            ignore and not (ignore["code"] and (ignore["why"] or not typed))
        ):
            found.append(number)
        above = line
    return found


def test_each_check_that_is_switched_off_has_its_reason_beside_it() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in (*PRODUCT, "tests", "benchmarks", "scripts")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
        for number in unexplained(path.read_text("utf-8"), typed=folder in PRODUCT)
    ]
    assert silent == []


def test_a_check_that_is_switched_off_without_a_reason_is_found() -> None:
    text = "a = 1  # noqa: S105\nb = 1  # noqa: S105 - no password\n# No loop is as fast.\nexec(c)  # noqa: S102\n"
    text += "\nd()  # noqa\ne()  # type: ignore\nf()  # type: ignore[misc]\ng()  # type: ignore[misc]  # fmt: skip\n"
    assert unexplained(text + "h()  # type: ignore[misc]  # nats-py has no types there\n") == [1, 6, 7, 8, 9]
    assert unexplained(text, typed=False) == [1, 6, 7]


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
