"""The number of examples of property tests that compute for seconds: a quarter in `make test`, all in `make prove`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., object])
ALL = os.environ.get("REACTOR_EXAMPLES") == "all"
"""True if every example is played: `make prove` runs tests marked `many` so."""


def examples(number: int) -> int:
    """Examples to play now, of `number` in `make prove`."""
    return number if ALL else max(number // 4, 10)


def many(number: int, **given: Any) -> Callable[[Test], Test]:
    """Decorator of a property test with `number` examples in `make prove`. `given`: its other settings."""

    def decorated(test: Test) -> Test:
        marked: Test = pytest.mark.many(settings(max_examples=examples(number), **given)(test))
        return marked

    return decorated
