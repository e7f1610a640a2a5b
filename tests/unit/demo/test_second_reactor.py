"""The demo's second reactor, where it does not come up."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor.demo.errors import ChildFailed
from reactor.demo.second_reactor import SecondReactor


async def test_a_second_reactor_that_did_not_start_is_started_again_by_the_next_press(tmp_path: Path) -> None:
    """It was taken for one that runs, and the page said that nothing is broken."""
    (tmp_path / "reactor.yaml").write_text(f"bus: {{store: {tmp_path / 'nats'}}}\n")  # where no bus runs
    second = SecondReactor(tmp_path / "reactor.yaml")
    for _ in range(2):
        with pytest.raises(ChildFailed, match="no reactor runs here"):
            await second.start()
    await second.kill()
