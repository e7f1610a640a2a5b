"""`reactor schema`: JSON Schema, for completion and checks in editors."""

from __future__ import annotations

import json
from typing import Any

import click

from reactor.cli.shared.options import output_option
from reactor.cli.shared.printing import as_yaml


@click.command()
@click.argument("what", type=click.Choice(["rules", "test", "settings"]), default="rules")
@output_option("json", "yaml")
def schema(what: str, output: str) -> None:
    """Print the JSON Schema of a file, for editors.

    rules (default): rule files. test: rule tests. settings: the settings file.

    \b
    reactor schema > reactor-rules.schema.json

    \b
    # then, as the first line of a rule file, for editors with the YAML language server:
    # yaml-language-server: $schema=reactor-rules.schema.json
    """
    found = _schema(what)
    click.echo(as_yaml(found) if output == "yaml" else json.dumps(found, indent=2, ensure_ascii=False))


def _schema(what: str) -> dict[str, Any]:
    if what == "settings":
        from reactor.settings.model import Settings

        return Settings.model_json_schema(by_alias=True)
    if what == "test":
        from rules.rehearsal.rule_tests import tester

        return tester.schema()
    from rules import loader

    return loader.schema()
