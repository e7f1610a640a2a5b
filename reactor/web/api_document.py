"""The OpenAPI document of `/api/v1`."""

from __future__ import annotations

from reactor.runtime.installed_versions import installed
from reactor.web.api_reads import READS
from reactor.web.api_schemas import SCHEMAS, Json
from reactor.web.api_writes import WRITES


def document() -> Json:
    """Give the document: each path with its parameters and what it answers."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "alert-reactor", "version": installed("alert-reactor"),
            "description": "What the reactor knows, waits for, holds back and did. Reads the bus.",
        },
        "security": [{"bearer": []}, {"session": []}, {}],
        "paths": {path: _with_errors(item) for path, item in (READS | WRITES).items()},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "reactor_session"},
            },
            "schemas": SCHEMAS,
        },
    }  # fmt: skip


def _with_errors(item: Json) -> Json:
    refused = {
        "description": "Refused",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    return {
        verb: {**operation, "responses": {**operation["responses"], "default": refused}}
        for verb, operation in item.items()
    }
