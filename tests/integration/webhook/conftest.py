"""A receiver for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.webhook.reception import Reception, reception


@pytest.fixture
async def receiver() -> AsyncIterator[Reception]:
    async with reception() as one:
        yield one
