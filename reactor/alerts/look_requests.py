"""Hears what deciders ask of the sources that alerts come from, and has the keeper look again."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from functools import partial

from pydantic import ValidationError

from bus import subjects
from bus.errors import Unavailable
from bus.messages import RefreshRequest
from bus.port import Bus
from reactor.alerts.lifecycle import AlertLifecycle
from reactor.runtime import telemetry

log = logging.getLogger(__name__)


async def serve(bus: Bus, lifecycle: AlertLifecycle, stack: AsyncExitStack) -> None:
    """Listen on the subject of each source of the keeper until the stack is closed. Raises Unavailable."""
    for source in sorted(lifecycle.sources):
        stack.push_async_callback(await bus.listen(subjects.refresh(source), partial(_refresh, lifecycle, source)))


async def _refresh(lifecycle: AlertLifecycle, source: str, body: bytes) -> None:
    try:
        await lifecycle.refresh(source, RefreshRequest.model_validate_json(body))
    except ValidationError:
        telemetry.source_errors.labels(source, "BadRequest").inc()
    except Unavailable as error:
        # Who lacks the answer asks again.
        log.info("a look at standing alerts waits for the bus", extra={"source": source, "reason": str(error)})
