"""A machine without a browser fails where pictures are needed: it passed with every page untested."""

from __future__ import annotations

import pytest

from tests.browser import browsing


@pytest.mark.parametrize(("required", "ends"), [("1", pytest.fail.Exception), ("", pytest.skip.Exception)])
async def test_tests_of_pages_fail_without_a_browser_where_one_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str, ends: type[BaseException]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("REACTOR_REQUIRE_BROWSER", required)
    with pytest.raises(ends, match="apt-get install chromium"):
        async with browsing():
            raise AssertionError("there is none")
