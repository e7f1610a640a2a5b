"""Settings of the receiver of traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, HttpUrl

from reactor.settings.part import SettingsPart


class Tracing(SettingsPart):
    """An OpenTelemetry collector that takes OTLP over HTTP. Needs the extra `otel`."""

    url: HttpUrl
    """Its whole address for traces: `http://collector:4318/v1/traces`."""
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the traces that begin here that is exported. One that came with a `traceparent` is as its flag says."""
    bearer_token_file: Path | None = None
    """A file with a token that the collector wants as Authorization. Read at the start."""

    def headers(self) -> dict[str, str]:
        """Give what each request carries. Raises OSError."""
        if self.bearer_token_file is None:
            return {}
        return {"Authorization": f"Bearer {self.bearer_token_file.read_text('utf-8').strip()}"}
