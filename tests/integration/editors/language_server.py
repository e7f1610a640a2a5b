"""A client for yaml-language-server: as much of the Language Server Protocol as an editor uses on one file."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

SERVER = "yaml-language-server"
PATIENCE = 60.0
"""Seconds: node starts slowly on a busy machine."""
SETTINGS = {"validate": True, "hover": True, "completion": True, "schemaStore": {"enable": False}}


def command() -> list[str]:
    """Give how it is started: `REACTOR_YAML_LANGUAGE_SERVER`, or what is beside Python or on PATH. Else skips."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = os.environ.get("REACTOR_YAML_LANGUAGE_SERVER") or shutil.which(SERVER, path=beside)
    if found is None:
        pytest.skip(f"no {SERVER}: `make test` fetches it where npm is, or set REACTOR_YAML_LANGUAGE_SERVER")
    return [found, "--stdio"]


class Editor:
    """`async with Editor(folder)`: one server process, and what it said."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._diagnostics: dict[str, asyncio.Queue[list[dict[str, Any]]]] = {}
        self._number = 0

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*command(), stdin=pipe, stdout=pipe)
        self._reading = asyncio.create_task(self._read())
        root = self._folder.as_uri()
        capabilities = {"workspace": {"configuration": True}, "textDocument": {"publishDiagnostics": {}}}
        await self.ask("initialize", {"processId": None, "rootUri": root, "capabilities": capabilities})
        self._send({"method": "initialized", "params": {}})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.cancel()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def open(self, file: Path) -> list[dict[str, Any]]:
        """Open a file and give what is wrong with it."""
        uri = file.as_uri()
        queue = self._diagnostics.setdefault(uri, asyncio.Queue())
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": file.read_text("utf-8")}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        async with asyncio.timeout(PATIENCE):
            return await queue.get()

    async def hover(self, file: Path, line: int, character: int) -> str:
        """Give what is shown over a place, both from 0."""
        found = await self.ask("textDocument/hover", _place(file, line, character))
        return "" if found is None else str(found["contents"]["value"])

    async def completions(self, file: Path, line: int, character: int) -> dict[str, str]:
        """Give what may be written at a place, with its documentation."""
        found = await self.ask("textDocument/completion", _place(file, line, character))
        return {item["label"]: str(item.get("documentation", "")) for item in found["items"]}

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and give its result."""
        self._number += 1
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self._send({"id": self._number, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE):
            return await answer

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def _read(self) -> None:
        out = self._process.stdout
        assert out is not None
        while header := await out.readuntil(b"\r\n\r\n"):
            length = int(header.lower().partition(b"content-length:")[2].split()[0])
            self._heard(json.loads(await out.readexactly(length)))

    def _heard(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method == "textDocument/publishDiagnostics":
            told = message["params"]
            self._diagnostics.setdefault(told["uri"], asyncio.Queue()).put_nowait(told["diagnostics"])
        elif method is not None and number is not None:
            wanted = message.get("params", {}).get("items", ()) if method == "workspace/configuration" else None
            result = None if wanted is None else [SETTINGS if one.get("section") == "yaml" else None for one in wanted]
            self._send({"id": number, "result": result})
        elif number in self._waiting:
            self._waiting.pop(number).set_result(message.get("result"))


def _place(file: Path, line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": file.as_uri()}, "position": {"line": line, "character": character}}
