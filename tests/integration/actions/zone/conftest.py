"""AWS by moto, and nothing of this machine's credentials."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reactor.clients.aws import Boto, connect
from tests.integration.actions.zone.aws import REGION, Vpc


@pytest.fixture(scope="module")
def boto() -> Iterator[Boto]:
    """One client for many tests, for it takes half a second to make; each test has a VPC of its own."""
    moto = pytest.importorskip("moto", reason="moto is not installed")
    with pytest.MonkeyPatch.context() as environment, moto.mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            environment.setenv(name, "testing")
        environment.delenv("AWS_PROFILE", raising=False)
        yield connect(REGION)


@pytest.fixture
def vpc(boto: Boto) -> Vpc:
    return Vpc(boto)
