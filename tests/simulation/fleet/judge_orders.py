"""Promises that were broken on a zone to which people gave orders: the last order counts, and excuses only itself.

disobeyed   an order to isolate, or to bring back by force, was not carried out in time and nothing was ordered since
unordered   a zone that a person has isolated came back without an order
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from reactor.audit.verdict import Breach
from tests.judge.object_history import RouteHistory, Run, Write
from tests.simulation.fleet.orders import OrderSeen

HEARD = 2.0
"""Seconds after which an order that the bus has taken is heard, as a pause is."""
OF_HEALTH = ("early", "needless", "blind")


def judge_orders(
    route: RouteHistory, run: Run, orders: Sequence[OrderSeen], found: Iterable[Breach]
) -> Iterator[Breach]:
    """Give every breach on this zone. `run`: of it alone. `found`: what would be a breach without orders."""
    mine = sorted((one for one in orders if one.order.name == route.name), key=lambda one: one.given)
    mine = [one for one in mine if one.order.what != "retry"]
    for breach in found:
        if not _is_ordered(route, run, mine, breach):
            yield breach
    for write in route.writes:
        yield from _unordered(route, write, mine)
    for number, order in enumerate(mine):
        following = mine[number + 1].given if number + 1 < len(mine) else inf
        yield from _disobeyed(route, run, order, following)


def _is_ordered(route: RouteHistory, run: Run, orders: Sequence[OrderSeen], breach: Breach) -> bool:
    """True if what looks like a breach is what a person's order leads to."""
    if breach.promise in OF_HEALTH:
        write = next(one for one in route.writes if one.at == breach.at)
        return any(_founds(route, run, one, write) for one in _last(orders, _sent(write)))
    if breach.promise in ("lost", "converged"):
        return _is_left(route, orders, breach)
    return False


def _is_left(route: RouteHistory, orders: Sequence[OrderSeen], breach: Breach) -> bool:
    """True if the zone is where a person put it: isolated until there is an order, or back until it is seen to fail
    again."""
    given = [one for one in orders if one.given <= breach.at]
    if not given:
        return False
    if given[-1].order.what == "isolate":
        return "home" in breach.what
    turns = [at for outage in route.outages_seen() for at in (outage.begin, outage.end) if at <= breach.at]
    return given[-1].taken >= max(turns, default=-inf)


def _last(orders: Sequence[OrderSeen], sent: float) -> list[OrderSeen]:
    """Give the orders that count for a write: given before it was sent, and none after it was heard by then."""
    given = [one for one in orders if one.given <= sent]
    return [one for one in given if not any(one.given < two.given and two.taken + HEARD < sent for two in given)]


def _founds(route: RouteHistory, run: Run, order: OrderSeen, write: Write) -> bool:
    """True if the order alone is reason enough. What is finished comes back without force only if it is healthy.

    An order to bring back ends one isolation: one that was there when it was heard, and no later one.
    """
    if order.order.what == "isolate":
        return route.away(write)
    if route.away(write):
        return False
    isolated = max((one.at for one in route.writes if route.away(one) and one.at < write.at), default=-inf)
    is_done = any(not route.away(one) and order.given <= one.at < write.at for one in route.writes)
    if is_done or isolated > run.due(order.taken):
        return False
    is_good = not any(outage.begin <= write.at < outage.end for outage in route.outages)
    return order.order.what == "force-back" or is_good or order.given < run.due(isolated)


def _unordered(route: RouteHistory, write: Write, orders: Sequence[OrderSeen]) -> Iterator[Breach]:
    if route.away(write):
        return
    counting = _last(orders, _sent(write))
    if counting and all(one.order.what == "isolate" and one.taken + HEARD < _sent(write) for one in counting):
        what = f"back {write.at - counting[-1].given:.3f} s after a person isolated it"
        yield Breach("unordered", route.name, write.at, what)


def _disobeyed(route: RouteHistory, run: Run, order: OrderSeen, following: float) -> Iterator[Breach]:
    due = run.due(order.taken)
    if due >= min(following, run.end) or order.order.what == "back":
        return
    if order.order.what == "force-back" and not route.is_away(order.taken):
        return  # it is in service, which is what was ordered; it says nothing about an isolation that begins later
    if route.is_away(due) is not (order.order.what == "isolate"):
        yield Breach("disobeyed", route.name, due, f"{order.order.what}, ordered {due - order.given:.3f} s before")


def _sent(write: Write) -> float:
    return write.at - write.under_way
