"""The reactor on a real API server, as deploy/ installs it. The emulator has no RBAC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.sources.conftest import running
from tests.kube.api import Api
from tests.kube.deployed import Deployed, settled

__all__ = ["running"]


@pytest.fixture
async def us(kube: Api, tmp_path: Path) -> AsyncIterator[Deployed]:
    """Us, on a server that has authorization."""
    if kube.server.sim is not None:
        pytest.skip("the emulator has no RBAC: this test needs a real API server")
    deployed = await settled(kube, tmp_path)
    yield deployed
    await deployed.leave()
