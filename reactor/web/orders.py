"""What people may order on the page: approve, reject, pause, resume. The same commands as those of the command line.

`by` is who has signed in, never what a request says.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Annotated, Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from bus.characters import all_seen
from bus.messages import AnyCommand, Approve, Pause, Reject, Resume
from reactor.runtime.clock import Clock
from reactor.settings.web import WebRole
from reactor.views.commanding import give
from reactor.views.pending import about, request_of, waits
from reactor.web.board import Board
from reactor.web.page_access import Access, Denied, Viewer
from reactor.web.request_body import asked
from rules.core.group import Group

log = logging.getLogger(__name__)

REJECTED_SECONDS = 3_600.0
_Text = Annotated[str, Field(min_length=1, max_length=1_024)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]


class Comment(BaseModel):
    """Why: what every order has to say."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)

    comment: _Text

    @field_validator("*")
    @classmethod
    def _seen(cls, value: Any) -> Any:
        """Invisible characters are refused: the audit must show exactly what was typed."""
        return all_seen(value.strip()) if isinstance(value, str) else value

    @field_validator("comment")
    @classmethod
    def _said(cls, comment: str) -> str:
        if not comment:
            msg = "give a reason: the audit records it"
            raise ValueError(msg)
        return comment


class _Order(Comment):
    rule: _Text


class AnswerOrder(_Order):
    """A yes or a no to a request."""

    object: _Text
    request: _Text
    for_seconds: Seconds | None = None


class PauseOrder(_Order):
    """A pause, or its end, for the rules whose names match a pattern."""

    for_seconds: Seconds | None = None


Taken = TypeVar("Taken", bound=Comment)


class Orders:
    """The routes that change something."""

    def __init__(self, board: Board, clock: Clock, access: Access, viewer: web.RequestKey[Viewer]) -> None:
        self._board, self._clock, self._access, self._viewer = board, clock, access, viewer

    def routes(self) -> list[web.RouteDef]:
        """Give the routes."""
        return [
            web.post("/api/v1/commands/approve", self._approve), web.post("/api/v1/commands/reject", self._reject),
            web.post("/api/v1/commands/pause", self._pause), web.post("/api/v1/commands/resume", self._resume),
        ]  # fmt: skip

    async def _approve(self, request: web.Request) -> web.Response:
        viewer, order = await self._taken(request, WebRole.APPROVE, AnswerOrder)
        group, now = self._pending(order), self._clock.now()
        words = self._words(viewer, order, now)
        return await self._given(Approve(rule=order.rule, object=about(group), request=order.request, **words), now)

    async def _reject(self, request: web.Request) -> web.Response:
        viewer, order = await self._taken(request, WebRole.APPROVE, AnswerOrder)
        group, now = self._pending(order), self._clock.now()
        words = self._words(viewer, order, now) | {"for_seconds": order.for_seconds or REJECTED_SECONDS}
        return await self._given(Reject(rule=order.rule, object=about(group), request=order.request, **words), now)

    async def _pause(self, request: web.Request) -> web.Response:
        viewer, order = await self._taken(request, WebRole.OPERATE, PauseOrder)
        now = self._clock.now()
        return await self._given(
            Pause(rule=order.rule, for_seconds=order.for_seconds, **self._words(viewer, order, now)), now
        )  # fmt: skip

    async def _resume(self, request: web.Request) -> web.Response:
        viewer, order = await self._taken(request, WebRole.OPERATE, PauseOrder)
        now = self._clock.now()
        return await self._given(Resume(rule=order.rule, **self._words(viewer, order, now)), now)

    async def _taken(self, request: web.Request, role: WebRole, kind: type[Taken]) -> tuple[Viewer, Taken]:
        viewer = request[self._viewer]
        self._access.check_write(viewer, request.headers, role)
        return viewer, await taken(request, kind)

    def _pending(self, order: AnswerOrder) -> Group:
        """The group whose request this is an answer to. Raises Denied where there is another one by now, or none."""
        for group in self._board.groups():
            if (group.rule, group.object) == (order.rule, order.object):
                if not waits(group):
                    raise Denied(409, "nothing is pending any more: look at the page again")
                if request_of(group) != order.request:
                    raise Denied(409, "the rule asks for something else now: look at the page again")
                return group
        raise Denied(404, f"{order.rule} has no object {order.object}")

    @staticmethod
    def _words(viewer: Viewer, order: Comment, at: datetime) -> dict[str, Any]:
        return {"by": viewer.name, "reason": order.comment, "observed_at": at}

    async def _given(self, command: AnyCommand, at: datetime) -> web.Response:
        id_ = await give(self._board.bus, command, at, "web")
        extra = {"command": type(command).__name__, "rule": command.rule, "by": command.by, "id": id_}
        log.info("a command was given on the page", extra=extra)
        return web.json_response({"id": id_}, status=202)


async def taken(request: web.Request, kind: type[Taken]) -> Taken:
    """Give what the body of a request orders. Raises Denied where it is something else."""
    try:
        return kind.model_validate(await asked(request))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Denied(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
