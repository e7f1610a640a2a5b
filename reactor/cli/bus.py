"""`reactor bus`: set up what the reactor needs on NATS, check what is there, and look at it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bus.permissions import PEOPLE, ROLES, of_person, of_role, of_source
from bus.server_users import Login, configuration, listed, nsc_commands
from reactor.cli.shared.options import bus_option, output_option
from reactor.cli.shared.outcome import told
from reactor.cli.shared.printing import as_json, as_tables, as_yaml, printed, say
from reactor.settings import model as settings_
from reactor.settings.bus_settings import BusSettings

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus

PATIENCE = timedelta(seconds=5)
JOIN_SECONDS = 15
"""Seconds for which `init` waits for servers of a cluster that have not joined yet."""
Row = dict[str, Any]
ClickCommand = Callable[..., None]
T = TypeVar("T")


class _Person(click.ParamType[tuple[str, str]]):
    """A name and a role: `ann=operator`."""

    name = "person"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Fails where it is none."""
        name, _, role = str(value).rpartition("=")
        if not name or role not in PEOPLE:
            self.fail(f"{value!r} is not NAME=ROLE with a role of {', '.join(PEOPLE)}", param, ctx)
        return name, role


PERSON = _Person()


@click.group()
def bus() -> None:
    """Set up, check and inspect the bus."""


def _asking(command: ClickCommand) -> ClickCommand:
    """Options of every command here."""
    options = (
        click.option(
            "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
            help="Settings file.",
        ),
        bus_option("url"),
        output_option(),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@bus.command()
@_asking
@click.option("--replicas", type=click.IntRange(1, 5), help="Copies of each stream; default: the settings'.")
@click.option("--partitions", type=click.IntRange(1, 1024), help="Partitions of a new bus; default: the settings'.")
def init(config: Path | None, url: str | None, output: str, replicas: int | None, partitions: int | None) -> None:
    """Create missing streams, buckets and queues.

    The command lists the changes. A second run changes nothing. The command makes nothing smaller and deletes nothing.
    It waits up to 15 s for servers of a cluster that have not joined yet.

    \b
    reactor bus init --bus nats://nats:4222 --replicas 3

    Exit code: 0; 1 if an existing stream, bucket or queue cannot be used; 3 if the bus cannot be reached.
    """
    with told():
        settings = settings_.load(config).bus
        steps = _run(settings, url, lambda bus: _init(bus, settings, replicas, partitions))
    rows = [{"name": step.name, "done": "made" if step.new else "changed", "what": _what(step)} for step in steps]
    say(_printed({"changes": rows}, output) or "everything exists already: nothing was changed")


@bus.command()
@_asking
def check(config: Path | None, url: str | None, output: str) -> None:
    """Check that the reactor can work on this bus.

    It checks version, permissions, a write, streams and clocks. The command writes one value for the test and changes
    nothing else.

    Exit code: 0; 1 if a check failed; 3 if the bus cannot be reached.
    """
    with told():
        from reactor.cli.shared.bus_findings import check_all

        settings = settings_.load(config).bus
        found = _run(settings, url, lambda bus: check_all(bus, settings))
    rows = [{"check": one.name, "result": one.result, "detail": one.detail} for one in found]
    say(_printed({"checks": rows}, output))
    sys.exit(1 if any(one.result == "failed" for one in found) else 0)


@bus.command()
@_asking
def status(config: Path | None, url: str | None, output: str) -> None:
    """Show streams, queues and partitions.

    Each partition has its owner and its number of unread facts.

    Exit code: 0; 1 if there are no streams; 3 if the bus cannot be reached.
    """
    with told():
        from reactor.cli.shared.bus_findings import look

        seen = _run(settings_.load(config).bus, url, look)
    say(_printed(seen, output))


@bus.command()
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="A user of this role. Repeatable.")
@click.option(
    "--person",
    "people",
    multiple=True,
    type=PERSON,
    metavar="NAME=ROLE",
    help=f"A user for this person, with the role {', '.join(PEOPLE)}. Repeatable.",
)
@click.option("--source", "sources", multiple=True, help="A user for the source of this signal. Repeatable.")
@click.option(
    "--login",
    type=click.Choice(["password", "nkey", "jwt"]),
    default="password",
    help="What users log in with. jwt: prints commands of nsc. Default: password.",
)
@output_option("text", "json", "yaml", about="Output format. text: for nats-server, or for nsc.")
def permissions(
    roles: tuple[str, ...], people: tuple[tuple[str, str], ...], sources: tuple[str, ...], login: str, output: str
) -> None:
    """Print a nats-server configuration with users.

    Each role has one user, with the permissions of that role only. Without options: reactor, viewer, operator and
    zones. Passwords come from the server's environment: NATS_PASSWORD_<USER>. With --login nkey, public keys do:
    NATS_NKEY_<USER>. With --login jwt, the command prints a shell script that adds the users to an account with nsc.

    A person with a user of their own can give commands in that name only. The server enforces it, and the audit records
    the name.

    With -o json or yaml, the command prints the same users and permissions as data, for other tools.

    \b
    reactor bus permissions --role reactor --person ann=operator --source backup-check > users.conf

    Exit code: 0.
    """
    names = roles or (() if sources or people else ("reactor", *PEOPLE))
    users = [*map(of_role, names), *(of_person(*one) for one in people), *map(of_source, sources)]
    if output != "text":
        if login == "jwt":
            raise click.UsageError("--login jwt prints commands of nsc: it has no -o json and no -o yaml")
        say(printed({"users": listed(users, _given(login))}, output))
        return
    click.echo(nsc_commands(users) if login == "jwt" else configuration(users, _given(login)), nl=False)


def _given(login: str) -> Login:
    return "nkey" if login == "nkey" else "password"


def _run(settings: BusSettings, url: str | None, ask: Callable[[JetStreamBus], Awaitable[T]]) -> T:
    from reactor.process.session import address, connected

    async def run() -> T:
        async with connected(settings, address(settings, url), "bus", patience=PATIENCE, read_only=False) as bus:
            return await ask(bus)

    return asyncio.run(run())


async def _init(
    bus: JetStreamBus, settings: BusSettings, replicas: int | None, partitions: int | None
) -> Sequence[Any]:
    from bus.jetstream.provisioning import copies
    from reactor.fleet.layout import partitions_of
    from reactor.process.session import agree_on_partitions
    from reactor.runtime.errors import SettingsError

    there, wanted = await copies(bus), replicas or settings.replicas
    if replicas is not None and (more := {name: count for name, count in there.items() if count > replicas}):
        raise SettingsError(
            f"--replicas {replicas}: {_pairs(more)} exist, and this command does not reduce them; "
            "if you mean it: nats stream edit NAME --replicas …, with one stream after the other"
        )
    known = await partitions_of(bus)
    count = partitions or known or settings.partitions
    if known is not None:
        await agree_on_partitions(bus, count)  # first: a bus with other partitions is left as it is
    steps = await _provisioned(bus, wanted)
    await agree_on_partitions(bus, count)
    return steps


async def _provisioned(bus: JetStreamBus, replicas: int) -> Sequence[Any]:
    from bus.errors import NotReady
    from bus.jetstream import provision

    for waited in range(JOIN_SECONDS):
        try:
            return await provision(bus, replicas=replicas)
        except NotReady as error:
            if not waited:
                click.echo(f"waiting up to {JOIN_SECONDS} s for servers of the cluster: {error}", err=True)
        await asyncio.sleep(1)
    return await provision(bus, replicas=replicas)


def _what(step: Any) -> str:
    return ", ".join(f"{key}: {there} -> {needed}" for key, (there, needed) in step.changes.items())


def _pairs(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def _printed(data: Mapping[str, Sequence[Row]], output: str) -> str:
    return {"json": as_json, "yaml": as_yaml, "table": as_tables}[output](data)
