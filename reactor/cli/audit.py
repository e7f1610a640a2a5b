"""`reactor audit verify`: were the promises kept? Judged from the stored decisions and facts, not by the engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bus.messages import DecisionRecord, Observation
from reactor.cli.shared.known_rules import told_rules
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import Row, as_table, as_yaml, printed, say, warn
from reactor.runtime.visible import visible
from reactor.settings import model as settings_
from reactor.settings.bus_settings import BusSettings
from reactor.settings.model import Settings
from reactor.views.stored_records import stored

if TYPE_CHECKING:
    from reactor.audit.signing import Signer
    from reactor.audit.verdict import AuditVerdict
    from rules.loader import RuleSet

PATIENCE = timedelta(seconds=3)
PROMISES = ("early", "needless", "doubled", "interleaved", "chain")


@click.group()
def audit() -> None:
    """Verify and export the record of decisions."""


@audit.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@click.option("--rules", multiple=True, metavar="FILE", help="Rule file, folder or glob; default: the settings'.")
@bus_option()
@output_option()
def verify(config: Path | None, rules: tuple[str, ...], bus: str | None, output: str) -> None:
    """Check recorded decisions against their evidence and stored facts.

    An action is needless where, by the evidence in its record, what it leaves was Healthy, or what gets traffic, copies
    or a zone back was not, or nothing shows it from the end of the window or later. This is checked for routes,
    placements, evictions, purges, cluster taints, and isolations of zones with their way back. Commands of people,
    taints as the cause, overflow, drift, and ways back to safety need no evidence.

    The command also checks that no record was changed, added or removed. Each record contains the hash of the one
    before it in its partition. The state of the partition contains the newest hash. So `chain` counts records that were
    edited, inserted, are missing, or were cut off before retention removes them.

    With `audit.keyFile` in the settings, the signature of each record's place is checked too. This also finds a whole
    chain that was rewritten, with another key or, where `audit.signedSince` is set, without signatures. Other records
    without a signature count as unsigned.

    Facts are kept for a day, decisions and their evidence for a month. A decision whose facts, or whose rule, are gone
    counts as undecided. The current rules are used.

    Exit code: 0; 1 if a promise was broken; 3 if the bus cannot be reached.
    """
    with told():
        from reactor.audit.signing import Signer
        from reactor.process.session import address

        settings = settings_.load(config, **({"rule_files": rules} if rules else {}))
        loaded, _ = told_rules(settings, "early and needless are not checked for rules of files that cannot be used")
        signer = Signer.of(settings.audit.key_file)
        verdict = asyncio.run(_verify(settings, address(settings.bus, bus), loaded, signer))
    say(_table(verdict) if output == "table" else printed(_data(verdict), output))
    sys.exit(1 if verdict.breaches else 0)


@audit.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG", help="Settings file."
)
@bus_option()
@output_option("json", "yaml", "table", about="Output format. json: one object a line; table: without facts and state.")
def export(config: Path | None, bus: str | None, output: str) -> None:
    """Print all decision records: as JSON, one object a line.

    The JSON output is for `reactor replay --file`, and for archives.

    Exit code: 0; 1 if no bus is named and none runs here, or it has no streams of a reactor; 3 if the bus cannot be
    reached.
    """
    with told():
        from reactor.process.session import address

        settings = settings_.load(config)
        asyncio.run(_export(settings.bus, address(settings.bus, bus), output))


async def _export(settings: BusSettings, url: str | Sequence[str], output: str) -> None:
    from bus.topology import DECISIONS
    from reactor.process.session import connected

    rows: list[Row] = []
    async with connected(settings, url, "audit", patience=PATIENCE) as bus:
        async for one in stored(bus, DECISIONS, unreadable=warn):
            if output == "json":
                click.echo(one.model_dump_json())
            elif output == "yaml":
                say(f"---\n{as_yaml(one.model_dump(mode='json'))}")
            elif isinstance(one, DecisionRecord):
                rows.append(_row(one))
    if output == "table":
        say(as_table(rows) if rows else "no decision records")


def _row(one: DecisionRecord) -> Row:
    actions = [str(action.get("action", "")) for action in one.actions]
    at = one.decided_at.isoformat(timespec="milliseconds")
    return {"at": at, "rule": one.rule, "object": one.object, "actions": actions, "held": one.held}


async def _verify(settings: Settings, url: str | Sequence[str], rules: RuleSet, signer: Signer | None) -> AuditVerdict:
    from bus.topology import FACTS
    from reactor.audit.audit_reader import audit_of
    from reactor.audit.decisions import judge
    from reactor.audit.links import check
    from reactor.audit.stored_observations import hear
    from reactor.process.session import connected
    from rules.rehearsal.recorded_premises import by_rules

    async with connected(settings.bus, url, "audit", patience=PATIENCE) as bus:
        audit = await audit_of(bus)
        observations = [one async for one in stored(bus, FACTS, unreadable=warn) if isinstance(one, Observation)]
    verdict = judge(audit.records, hear(observations), by_rules(rules.rules))
    chains = check(
        audit.stored, audit.heads, audit.kept_since, signer, signed_since=settings.audit.signed_since
    )  # fmt: skip
    verdict.add(PROMISES[-1], chains.breaches, tested=chains.tested[PROMISES[-1]])
    if signer is not None:
        verdict.tested["unsigned"] = chains.tested["unsigned"]
    return verdict


def _table(verdict: AuditVerdict) -> str:
    lines = [f"{'PROMISE':12}  BROKEN  TESTED"]
    lines += [f"{promise:12}  {verdict.broken(promise):6}  {verdict.tested[promise]:6}" for promise in PROMISES]
    counted = [word for word in ("undecided", "unsigned") if word in verdict.tested or word == "undecided"]
    lines += [f"{word:12}  {'-':>6}  {verdict.tested[word]:6}" for word in counted]
    for breach in verdict.breaches:
        at = datetime.fromtimestamp(breach.at, UTC).isoformat(timespec="milliseconds")
        lines.append(visible(f"{breach.promise}: {breach.route} at {at}: {breach.what}"))
    return "\n".join(lines)


def _data(verdict: AuditVerdict) -> dict[str, object]:
    breaches = [
        {"promise": one.promise, "group": one.route, "at": one.at, "what": one.what} for one in verdict.breaches
    ]
    return {"tested": dict(verdict.tested), "breaches": breaches}
