"""schemathesis asks the API what its document allows, and what it does not: each answer is one of the document."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.integration.web.conftest import Start, token

SECONDS = 45
"""At most so long: on a busy machine fewer questions are asked."""


@pytest.mark.long
async def test_the_api_answers_as_its_document_says_whatever_is_asked(start: Start, tmp_path: Path) -> None:
    scene = await start(users=True, viewersMax=1)
    await scene.ask_for_approval()
    await scene.break_checkout()
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{scene.url}/api/v1/openapi.json", "--seed", "1",
        "--max-examples", "25", "--max-time", str(SECONDS), "--phases", "examples,coverage,fuzzing", "--no-color",
        "--exclude-path", "/api/v1/events",  # it has no end
        "--continue-on-failure", "-H", f"Authorization: Bearer {token('otto')}", "--generation-database", "none",
        "--suppress-health-check", "filter_too_much",
        "--exclude-checks", "positive_data_acceptance",  # whether an object is known, no document says
    ]  # fmt: skip
    run = await asyncio.create_subprocess_exec(
        *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await run.communicate()
    assert run.returncode == 0, said.decode()
    assert (await scene.get("/api/v1/status", Authorization=f"Bearer {token('vera')}"))[0] == 200
