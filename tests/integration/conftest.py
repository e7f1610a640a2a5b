"""Fixtures of tests of pages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.browser import Browser, browsing


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """Chromium, with an empty page."""
    async with browsing() as browser:
        yield browser
