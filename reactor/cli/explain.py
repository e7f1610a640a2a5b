"""`reactor explain`: from an act back to what caused it; or which rules an alert would reach."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, fields
from pathlib import Path

import click

from reactor.cli.shared.asking import PATIENCE
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, as_yaml, say, warn
from reactor.rulefiles.snapshot import load_alone
from reactor.runtime.clock import Clock
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.bus_settings import BusSettings
from reactor.views.explaining import chain_of
from rules.rehearsal.basis import line as evidence_line
from rules.rehearsal.causal_chain import CausalChain
from rules.rehearsal.reach import lines, reach
from rules.rulefile.matchers import BadMatcher, Matchers

_WRITERS = {"json": as_json, "yaml": as_yaml}
_PARTS = ("observations", "windows", "evidence", "decision", "guards", "write", "outcomes")


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@click.option("--rules", multiple=True, metavar="FILE", help="Rule file, folder or glob; default: the settings'.")
@click.option("--match", metavar="LABELS", help='Labels of an alert, as in severity="page",cluster="east".')
@output_option("text", "json", "yaml")
@click.argument("action", required=False)
def explain(
    config: Path | None, bus: str | None, rules: tuple[str, ...], match: str | None, output: str, action: str | None
) -> None:
    """Trace ACTION back to the observations that caused it. With --match: show which rules an alert reaches.

    The trace has observations, windows, evidence, decision, guards, write and outcomes.

    ACTION is an ID, as shown in logs, Kubernetes Events and the annotation reactor/decision. Decisions are kept for a
    month, their observations for a day.

    The evidence lists each target that loses or gets something: its window, and the newest observation of each signal
    that agrees, with its time, its start and its source.

    \b
    reactor explain checkout/east/shop/TrafficSplit/checkout/3
    reactor explain --match 'alertname="HighErrors",service="checkout"' --rules rules/

    Exit code: 0; 1 if there is no such action, or no rule gets the alert; 3 if the bus cannot be reached.
    """
    if (action is None) == (match is None):
        raise click.UsageError("give an action, or labels with --match")
    with told():
        settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        if match is not None:
            heard = list(reach(_labels(match), load_alone(settings), Clock().now()))
            text = "\n".join(lines(heard)) or "there is no AlertmanagerWebhook source"
            say(text if output == "text" else _WRITERS[output]([asdict(one) for one in heard]))
            sys.exit(0 if any(rule.reaches for one in heard for rule in one.rules) else 1)
        found = asyncio.run(_found(settings.bus, bus, action or ""))
    if found is None:
        say(f"reactor: no decision of the last month has the action {action}", err=True)
        sys.exit(1)
    data = {one.name: getattr(found, one.name) for one in fields(found) if one.name != "records"}
    say(_text(found) if output == "text" else _WRITERS[output](_plain(data)))


def _labels(text: str) -> dict[str, str]:
    try:
        matchers = Matchers.parse(text).all
    except BadMatcher as error:
        raise click.UsageError(f"--match: {error}") from error
    if wrong := [one for one in matchers if one.operator != "="]:
        raise click.UsageError(
            f"--match: {wrong[0].label}{wrong[0].operator}: an alert has labels, not matchers: write ="
        )
    return {one.label: one.value for one in matchers}


async def _found(settings: BusSettings, url: str | None, id_: str) -> CausalChain | None:
    from reactor.process.session import address, connected

    async with connected(settings, address(settings, url), "explain", patience=PATIENCE) as bus:
        return await chain_of(bus, id_, warn)


def _text(found: CausalChain) -> str:
    lines = [f"{found.action['id']}: {found.action['action']}"]
    for part in _PARTS:
        lines.append(part)
        found_lines = map(evidence_line, found.evidence) if part == "evidence" else getattr(found, part)
        lines += [f"  {visible(line)}" for line in found_lines] or ["  none recorded"]
    return "\n".join(lines)


def _plain(data: dict[str, object]) -> dict[str, object]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
