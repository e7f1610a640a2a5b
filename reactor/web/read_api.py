"""`/api/v1`, what can be read: each handler gives plain values."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings
from reactor.views.explaining import chain_of, observations_of
from reactor.views.membership import members_of
from reactor.views.rows import Row, stamp
from reactor.web.backtest_folder import BacktestFolder
from reactor.web.board import Board
from reactor.web.rule_rows import metrics_of, rule_rows
from reactor.web.topology_map import fleet_map
from rules.rehearsal.basis import line as evidence_line
from rules.rulefile.targets import matches

log = logging.getLogger(__name__)

LIMIT_MAX = 2_000
OBSERVATIONS_MAX = 500
TARGET_MAX = 1_024
_PARTS = ("observations", "windows", "decision", "guards", "write", "outcomes")


class ReadApi:
    """Routes of the API that only read, for any number of readers."""

    def __init__(
        self, board: Board, clock: Clock, clusters: Mapping[str, ClusterSettings], digest: Callable[[], str],
        backtests: BacktestFolder,
    ) -> None:  # fmt: skip
        self._board, self._clock, self._clusters, self._digest = board, clock, clusters, digest
        self._backtests = backtests

    def routes(self) -> list[web.RouteDef]:
        """Give the routes."""
        return [
            web.get("/api/v1/status", self._status), web.get("/api/v1/groups", self._groups),
            web.get("/api/v1/rules", self._rules), web.get("/api/v1/targets", self._targets),
            web.get("/api/v1/targets/{target:.+}", self._target), web.get("/api/v1/actions", self._actions),
            web.get("/api/v1/actions/{action:.+}", self._action), web.get("/api/v1/members", self._members),
            web.get("/api/v1/map", self._map),
        ]  # fmt: skip

    async def _status(self, _: web.Request) -> web.Response:
        return web.json_response(self._board.snapshot())

    async def _groups(self, request: web.Request) -> web.Response:
        rule, object_ = request.query.get("rule", "*"), request.query.get("object")
        rows = [
            row for row in self._board.group_rows(self._clock.now())
            if matches(rule, row["rule"]) and object_ in (None, row["object"])
        ]  # fmt: skip
        return web.json_response({"now": stamp(self._clock.now()), "groups": rows})

    async def _rules(self, _: web.Request) -> web.Response:
        heads, rules = await asyncio.to_thread(self._backtests.heads), self._board.rule_set
        rows = [
            {**row, **self._backtests.shown(row["name"], heads, rules)}
            for row in rule_rows(self._board, self._clock.now())
        ]
        return web.json_response({"digest": self._digest(), "rules": rows})

    async def _targets(self, _: web.Request) -> web.Response:
        found: dict[str, Row] = {}
        for row in self._board.group_rows(self._clock.now()):
            for one in row["targets"]:
                known = found.setdefault(one["target"], {**one, "rules": []})
                known["rules"].append(row["rule"])
        return web.json_response({"targets": [found[name] for name in sorted(found)]})

    async def _target(self, request: web.Request) -> web.Response:
        target = request.match_info["target"]
        if len(target) > TARGET_MAX:
            raise web.HTTPBadRequest(text=f"target: at most {TARGET_MAX} characters")
        groups = [
            row for row in self._board.group_rows(self._clock.now())
            if any(one["target"] == target for one in row["targets"])
        ]  # fmt: skip
        said = sorted(await observations_of(self._board.bus, target, log.info), key=lambda one: one.observed_at)
        if not groups and not said:
            raise web.HTTPNotFound(text="no rule and no source has this target")
        objects = {(row["rule"], row["object"]) for row in groups}
        seen = [
            {"at": stamp(one.observed_at), "signal": one.signal, "status": one.status.value, "detail": one.detail}
            for one in said[-OBSERVATIONS_MAX:]
        ]
        acts = [row for row in self._board.actions() if (row["rule"], row["object"]) in objects]
        body = {"now": stamp(self._clock.now()), "target": target, "groups": groups, "observations": seen,
                "metrics": metrics_of(self._board.rule_set, {str(one["signal"]) for one in seen}),
                "observationsLeftOut": max(len(said) - OBSERVATIONS_MAX, 0), "actions": acts}  # fmt: skip
        return web.json_response(body)

    async def _actions(self, request: web.Request) -> web.Response:
        query = request.query
        limit, since, until = _limit(query.get("limit")), _time(query, "since"), _time(query, "until")
        found = [
            row for row in self._board.actions()
            if _wanted(row, query) and (since is None or row["at"] >= since) and (until is None or row["at"] <= until)
        ]  # fmt: skip
        return web.json_response({"actions": found[:limit], "leftOut": max(len(found) - limit, 0)})

    async def _action(self, request: web.Request) -> web.Response:
        id_ = request.match_info["action"]
        if len(id_) > TARGET_MAX:
            raise web.HTTPBadRequest(text=f"action: at most {TARGET_MAX} characters")
        found = await chain_of(self._board.bus, id_, log.info)
        if found is None:
            raise web.HTTPNotFound(text="no decision of the last month has this action")
        chain: dict[str, Any] = {part: list(getattr(found, part)) for part in _PARTS}
        chain["evidence"] = [evidence_line(one) for one in found.evidence]
        return web.json_response({"id": id_, "action": dict(found.action), **chain})

    async def _members(self, _: web.Request) -> web.Response:
        return web.json_response(await members_of(self._board.bus, log.info))

    async def _map(self, _: web.Request) -> web.Response:
        rows = self._board.group_rows(self._clock.now())
        return web.json_response(fleet_map(self._board.groups(), rows, self._clusters))


def _wanted(row: Row, query: Mapping[str, str]) -> bool:
    """True if an action fits all filters that are given."""
    outcome = (row["outcome"] or {}).get("status", "Pending")
    return (
        matches(query.get("rule", "*"), row["rule"])
        and query.get("object") in (None, "", row["object"])
        and query.get("type") in (None, "", row["action"])
        and query.get("outcome") in (None, "", outcome)
    )


def _time(query: Mapping[str, str], name: str) -> str | None:
    """Give a time of a query as actions have theirs."""
    if name not in query:
        return None
    try:
        moment = datetime.fromisoformat(query[name])
        return stamp(moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC))
    except (ValueError, OverflowError):
        raise web.HTTPBadRequest(text=f"{name}: a time as 2026-01-31T12:00:00Z") from None


def _limit(text: str | None) -> int:
    if text is None:
        return 200
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= LIMIT_MAX:
        raise web.HTTPBadRequest(text=f"limit: a number from 1 to {LIMIT_MAX}")
    return int(text)
