"""`reactor demo`: watch a failover on this machine."""

from __future__ import annotations

import sys

import click


@click.command()
@click.option("--once", is_flag=True, help="End after the story instead of going on until Ctrl-C.")
@click.option("-v", "--verbose", is_flag=True, help="Show the reactor's log on stderr instead of keeping it in a file.")
def demo(*, once: bool, verbose: bool) -> None:
    """Watch a failover on this machine: no cluster is needed, nothing is left behind.

    Three emulated clusters with a service each, a gateway that sends real requests by the weights of a TrafficSplit,
    and the real reactor with an embedded bus. A service breaks; after the time that the rule tolerates, its traffic
    moves to the other clusters; it heals, and after its recovery time the traffic comes back. About 30 seconds.

    Then it goes on until Ctrl-C, with commands to try. Everything listens on loopback.

    \b
    Exit code: 0 when the story went as told, 1 when not, 130 or 143 when interrupted before that.
    """
    from bus.errors import BusError
    from reactor.demo.run import run
    from reactor.runtime.errors import ReactorError

    try:
        code = run(once=once, verbose=verbose)
    except (ReactorError, BusError) as error:
        notes: list[str] = getattr(error, "__notes__", [])
        click.echo("\n".join([f"reactor demo: {error}", *notes]), err=True)
        code = 1
    sys.exit(code)
