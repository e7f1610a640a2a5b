"""Approvals by link: what a link of a notification is about, and the one answer that it is good for.

Looking never acts. The answer needs a person who is signed in, with the role: the link alone gives no access.
"""

from __future__ import annotations

import logging
from typing import Literal

from aiohttp import web

from bus.errors import BusError
from bus.messages import Approve, Reject
from bus.topology import LINKS
from reactor.actions.notify.approval_link import ApprovalLink, ApprovalLinks, LinkUnusable
from reactor.runtime.clock import Clock
from reactor.settings.web_settings import WebRole
from reactor.views.commanding import give
from reactor.views.pending import about, request_of, waits
from reactor.views.rows import Row, stamp
from reactor.web.board import Board
from reactor.web.order_body import Comment, Seconds, taken
from reactor.web.orders import REJECTED_SECONDS
from reactor.web.page_access import Access, Denied, Viewer
from rules.core.group import Group

log = logging.getLogger(__name__)

TOKEN_MAX = 8_192


class LinkAnswer(Comment):
    """A yes or a no to what a link is about."""

    answer: Literal["approve", "reject"]
    for_seconds: Seconds = REJECTED_SECONDS


class LinkedApprovals:
    """The routes under `/api/v1/approvals`."""

    def __init__(self, board: Board, clock: Clock, access: Access, viewer: web.RequestKey[Viewer]) -> None:
        self._board, self._clock, self._access, self._viewer = board, clock, access, viewer
        self._links = ApprovalLinks(board.bus.store(LINKS))

    def routes(self) -> list[web.RouteDef]:
        """Give the routes."""
        path = "/api/v1/approvals/{token}"
        return [web.get(path, self._look), web.post(path, self._answer)]

    async def _look(self, request: web.Request) -> web.Response:
        link = await self._read(request)
        used, group = await self._links.used(link), self._pending(link)
        body: Row = {
            "rule": link.rule, "object": link.object, "request": link.request, "until": stamp(link.until),
            "state": "used" if used else "open" if group is not None else "changed", "used": used,
            "plan": group.held.detail if group is not None and group.held is not None else "",
        }  # fmt: skip
        return web.json_response(body)

    async def _answer(self, request: web.Request) -> web.Response:
        viewer = request[self._viewer]
        self._access.check_write(viewer, request.headers, WebRole.APPROVE)
        answer, link = await taken(request, LinkAnswer), await self._read(request)
        if self._pending(link) is None:
            raise Denied(409, "the rule does not ask for this any more: this link counts for nothing else")
        now = self._clock.now()
        words: Row = {"by": viewer.name, "reason": answer.comment, "observed_at": now}
        named: Row = {"rule": link.rule, "object": link.object, "request": link.request}
        yes = answer.answer == "approve"
        command = Approve(**named, **words) if yes else Reject(**named, **words, for_seconds=answer.for_seconds)
        said = "approved" if yes else "rejected"
        try:
            mark = await self._links.use(link, f"{said} by {viewer.name} at {stamp(now)}")
        except LinkUnusable as error:
            raise Denied(410, str(error)) from None
        try:
            id_ = await give(self._board.bus, command, now, "link")
        except BusError:
            await self._links.give_back(link, mark)
            raise
        log.info("a link was used", extra={"rule": link.rule, "object": link.object, "by": viewer.name, "id": id_})
        return web.json_response({"id": id_}, status=202)

    async def _read(self, request: web.Request) -> ApprovalLink:
        token = request.match_info["token"]
        if len(token) > TOKEN_MAX:
            raise Denied(410, "this link is none of this reactor")
        try:
            return await self._links.read(token, self._clock.now())
        except LinkUnusable as error:
            raise Denied(410, str(error)) from None

    def _pending(self, link: ApprovalLink) -> Group | None:
        """The group that waits for exactly this; None: it waits for something else, or for nothing."""
        for group in self._board.groups():
            if group.rule == link.rule and about(group) == link.object and waits(group):
                return group if request_of(group) == link.request else None
        return None
