"""`reactor replay`: the decisions of a live system, decided again: each must come out exactly as it was recorded."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

import click

from bus.messages import DecisionRecord
from reactor.cli.shared.asking import PATIENCE
from reactor.cli.shared.files import read_text
from reactor.cli.shared.known_rules import told_rules
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import printed, say, warn
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.bus_settings import BusSettings
from reactor.views.stored_records import from_lines, stored
from rules.engine.routing import Routing
from rules.rehearsal.decision_replay import Match, Replayed
from rules.rehearsal.decision_replay import replay as again


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@click.option("--rules", multiple=True, metavar="FILE", help="Rule file, folder or glob; default: the settings'.")
@click.option("--file", metavar="FILE", help="Read records from a file of `reactor audit export` instead of the bus.")
@click.option("--other-rules", is_flag=True, help="Also use rules that have changed since, and show the differences.")
@output_option("text", "json", "yaml")
def replay(
    config: Path | None, bus: str | None, rules: tuple[str, ...], file: str | None, output: str, *, other_rules: bool
) -> None:
    """Repeat all recorded decisions, and compare the results.

    A record contains the state, the facts and the time of a decision. The same rule must decide the same. Records of a
    rule that has changed since are counted separately. With --other-rules they are decided by the rule of today.

    Exit code: 0; 1 if a decision differs, or no record could be compared; 3 if the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        routing = Routing.of(told_rules(settings, "records of rules whose files cannot be used count as OtherRule")[0])
        records = _file(file) if file is not None else asyncio.run(_stream(settings.bus, bus))
    results = [again(record, routing, other_rules=other_rules) for record in records]
    counts = Counter(one.match for one in results)
    different = [one for one in results if one.match is Match.DIFFERENT]
    if output != "text":
        say(printed({"counts": {match.value: counts[match] for match in Match}, "different": [
            {"recorded": one.record.model_dump(mode="json"),
             "decided": one.actual.model_dump(mode="json") if one.actual else None} for one in different
        ]}, output))  # fmt: skip
    else:
        for one in different:
            say(_difference(one))
        say(", ".join(f"{match.value} {counts[match]}" for match in Match))
    sys.exit(1 if different or not counts[Match.SAME] else 0)


def _file(name: str) -> list[DecisionRecord]:
    try:
        return list(from_lines(read_text(name).split("\n"), name))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}: {error}") from error


async def _stream(settings: BusSettings, url: str | None) -> list[DecisionRecord]:
    from bus.topology import DECISIONS
    from reactor.process.session import address, connected

    async with connected(settings, address(settings, url), "replay", patience=PATIENCE) as bus:
        return [one async for one in stored(bus, DECISIONS, unreadable=warn) if isinstance(one, DecisionRecord)]


def _difference(one: Replayed) -> str:
    record, actual = one.record, one.actual
    lines = [f"{record.rule} {record.object} at {record.decided_at.isoformat()}:"]
    for name, side in (("recorded", record), ("decided now", actual)):
        if side is not None:
            asked = [
                f"{action['action']} {action['id']} {action.get('weights', '')}".rstrip() for action in side.actions
            ]
            lines.append(f"  {name}: {', '.join(asked) or 'no action'}; held: {side.held or 'no'}")
    return "\n".join(map(visible, lines))
