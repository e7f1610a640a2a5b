"""`reactor demo`: watch a failover on this machine."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click


@click.command()
@click.option("--once", is_flag=True, help="Exit after the failback instead of running until Ctrl-C.")
@click.option("-v", "--verbose", is_flag=True, help="Show the reactor's log on stderr instead of keeping it in a file.")
def demo(*, once: bool, verbose: bool) -> None:
    """Watch a failover on this machine. It needs no cluster and leaves nothing behind.

    The demo starts three emulated clusters with one service each, a gateway that sends real requests by the weights of
    a TrafficSplit, and the real reactor with an embedded bus. A service breaks. After the rule's toleration time, its
    traffic moves to the other clusters. The service recovers. After its recovery time, the traffic comes back. This
    takes about 30 seconds.

    The demo then runs until Ctrl-C, with a second reactor, and prints commands to try and two links: the reactor's
    page, and a page with buttons that break things, each with what to watch. Everything listens on loopback.

    \b
    Exit code: 0 if the failover and the failback happened, 1 if not, 130 or 143 if interrupted before.
    """
    if find_spec("reactor.demo.kube") is None:
        click.echo(
            "reactor demo: the image has no emulated clusters; install alert-reactor[embedded] with pip", err=True
        )
        sys.exit(1)
    from bus.errors import BusError
    from reactor.demo.demo_run import run
    from reactor.runtime.errors import ReactorError

    try:
        code = run(once=once, verbose=verbose)
    except (ReactorError, BusError) as error:
        notes: list[str] = getattr(error, "__notes__", [])
        click.echo("\n".join([f"reactor demo: {error}", *notes]), err=True)
        code = 1
    sys.exit(code)
