"""`reactor import`: converts the configuration of other tools. A new format is one module and one line here."""

from __future__ import annotations

import click

from reactor.cli.importers.karmada_import import karmada
from reactor.cli.importers.linkerd_import import linkerd
from reactor.cli.importers.prometheus_import import prometheus


@click.group(name="import")
def import_() -> None:
    """Convert the configuration of other tools into rule files.

    The command prints the rules. On stderr it lists what was converted and what was not. The rules are in mode DryRun:
    read, check and test them before you let them act.
    """


for _command in (linkerd, karmada, prometheus):
    import_.add_command(_command)
