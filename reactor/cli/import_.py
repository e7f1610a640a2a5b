"""`reactor import`: what other tools are told to do, as rule files. A new format is one module and one line here."""

from __future__ import annotations

import click

from reactor.cli.importers.karmada import karmada
from reactor.cli.importers.linkerd import linkerd
from reactor.cli.importers.prometheus import prometheus


@click.group(name="import")
def import_() -> None:
    """Turn what other tools go by into rule files.

    The rules are printed, and on stderr what was carried over and what was not. They are in mode DryRun: read them,
    check and test them, and only then let them act.
    """


for _command in (linkerd, karmada, prometheus):
    import_.add_command(_command)
