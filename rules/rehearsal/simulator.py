"""Output of `reactor simulate`: one JSON line per action, hold or notification, keys in the contract's order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bus.messages import Fact, Hold, Mode
from rules.core.reasons import sentence
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Emitted, play
from rules.rulefile.model import Rule


def simulate(
    rules: Routing | Sequence[Rule], history: Iterable[tuple[float, Fact]], *, until: float, outcomes: bool = True
) -> Iterator[str]:
    """Play a history and give the lines. The same input gives the same lines, byte for byte.

    A rehearsal acts on nothing whatever a rule's mode is, so the lines do not say it.
    """
    for said in play(rules, history, until=until, outcomes=outcomes):
        yield json.dumps({key: value for key, value in line(said).items() if key != "mode"}, ensure_ascii=False)


def in_words(
    rules: Routing | Sequence[Rule], history: Iterable[tuple[float, Fact]], *, until: float, outcomes: bool = True
) -> Iterator[str]:
    """Play a history and give it for people: when, which rule, what and why, and below what that rests on."""
    silent = True
    for said in play(rules, history, until=until, outcomes=outcomes):
        silent = False
        what = said.what
        if isinstance(what, Hold):
            text, why = f"holds on {what.object}", f"{what.held}: {sentence(what.held)}"
        else:
            text, why = what.summary, f"{what.because}: {sentence(what.because)}".rstrip(": ")
        yield f"{clock(said.at)}  {what.rule}  {text}"
        yield f"    {why}"
        yield from (f"    {line}" for line in ([what.detail] if what.detail else said.because))
    if silent:
        yield f"nothing happens until {clock(until)}"


def clock(second: float) -> str:
    """Give a second as `01:02:03.5`; days before it where there are some."""
    whole, part = divmod(round(second * 1000), 1000)
    days, rest = divmod(whole, 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}" + (f".{part:03}".rstrip("0") if part else "")
    return f"{days}d {text}" if days else text


def line(said: Emitted) -> dict[str, Any]:
    """One thing that came out, with the keys that users and checks rely on; of a dry run, rule tests see the mode."""
    what = said.what
    if isinstance(what, Hold):
        return {"at": said.at, "rule": what.rule, "held": what.held, "object": what.object, "detail": what.detail}
    body: dict[str, Any] = {"at": said.at, "rule": what.rule, "action": type(what).__name__, "object": what.object}
    body |= what.shown
    body |= {"because": what.because, "id": what.id}
    if what.mode is Mode.DRY_RUN:
        body["mode"] = what.mode.value  # it would act: nothing is written
    return body
