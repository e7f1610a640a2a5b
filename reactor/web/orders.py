"""Orders that people may give on the page. The same commands as those of the command line.

`by` is who has signed in, never what a request says.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from bus.messages import AnyCommand, Approve, Reject
from reactor.runtime.clock import Clock
from reactor.settings.web_settings import WebRole
from reactor.views.commanding import give
from reactor.views.pending import about, request_of, waits
from reactor.views.rows import stamp
from reactor.web.board import Board
from reactor.web.operation_order import Operation, PlanBasis, ShownPlan
from reactor.web.operations import OPERATIONS
from reactor.web.order_body import Comment, Seconds, Taken, Text, refused, taken
from reactor.web.page_access import Access, Denied, Viewer
from rules.core.group import Group

log = logging.getLogger(__name__)

REJECTED_SECONDS = 3_600.0


class AnswerOrder(Comment):
    """A yes or a no to a request."""

    rule: Text
    object: Text
    request: Text
    for_seconds: Seconds | None = None


class Orders:
    """The routes that change something."""

    def __init__(self, board: Board, clock: Clock, access: Access, viewer: web.RequestKey[Viewer]) -> None:
        self._board, self._clock, self._access, self._viewer = board, clock, access, viewer

    def routes(self) -> list[web.RouteDef]:
        """Give the routes."""
        return [
            web.post("/api/v1/commands/approve", self._approve), web.post("/api/v1/commands/reject", self._reject),
            *(web.post(f"/api/v1/plans/{name}", partial(self._plan, kind)) for name, kind in OPERATIONS.items()),
            *(web.post(f"/api/v1/commands/{name}", partial(self._operate, kind)) for name, kind in OPERATIONS.items()),
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

    async def _plan(self, kind: type[Operation], request: web.Request) -> web.Response:
        viewer = request[self._viewer]
        self._access.check_write(viewer, request.headers, WebRole.OPERATE)
        order, now = await taken(request, kind, comment="to see the plan"), self._clock.now()
        plan = self._shown(order, self._words(viewer, order, now))
        return web.json_response({"plan": plan.text, "fingerprint": plan.fingerprint, "refused": [*plan.refused]})

    async def _operate(self, kind: type[Operation], request: web.Request) -> web.Response:
        viewer, order = await self._taken(request, WebRole.OPERATE, kind)
        now = self._clock.now()
        plan = self._shown(order, self._words(viewer, order, now))
        if order.plan not in (None, plan.fingerprint):
            raise Denied(409, "the plan has changed: look at it again")
        return await self._given(plan.command, now)

    def _shown(self, order: Operation, words: dict[str, Any]) -> ShownPlan:
        try:
            return order.shown(PlanBasis(self._board.rules, self._board.groups(), words))
        except ValidationError as error:  # names that no rule, object or zone can have
            raise refused(error) from error

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
        return web.json_response({"id": id_, "at": stamp(at)}, status=202)
