"""The command line. A sub-command is imported when it is asked for: `reactor check` needs neither NATS nor Kubernetes.

Exit codes are promtool's: 0 all is well, 1 something was found or failed, 2 the command line is wrong.
"""

from __future__ import annotations

import gc
from importlib import import_module
from keyword import iskeyword

import click

from reactor.cli.shared.old_names import renamed
from reactor.runtime import own_packages
from reactor.runtime.errors import SettingsError

COMMANDS = {
    "init": "Generate starter rules from clusters.",
    "check": "Find mistakes in rule files.",
    "test": "Run rule tests.",
    "simulate": "Play a history through rules.",
    "backtest": "Play Prometheus history through rules.",
    "import": "Convert the configuration of other tools into rule files.",
    "schema": "Print the JSON Schema of a file, for editors.",
    "demo": "Watch a failover on this machine.",
    "run": "Run the reactor.",
    "status": "Show rules and their current state.",
    "watch": "Watch rules live; approve and pause.",
    "pause": "Pause rules: they take no action until you resume them.",
    "resume": "Resume paused rules.",
    "approve": "Approve a pending action.",
    "reject": "Reject a pending action for a limited time.",
    "traffic": "Show where traffic goes, and move it by hand.",
    "zone": "Show zones, isolate a zone, and bring it back.",
    "members": "List members and partitions.",
    "bus": "Set up, check and inspect the bus.",
    "rbac": "Print the permissions in Kubernetes that the rules need.",
    "doctor": "Find what keeps the reactor from working.",
    "support-bundle": "Collect what a person needs to help, without secrets.",
    "explain": "Trace an action back to its cause.",
    "replay": "Repeat recorded decisions, and compare the results.",
    "audit": "Verify and export the record of decisions.",
    "version": "Print versions.",
}
"""Each is a function of this name, in a file of this name but for those below. The help texts are here, so that
`--help` imports no command."""
FILES = {"import": "import_", "resume": "pause", "reject": "approve"}


class LazyGroup(click.Group):
    """A group that imports a command only when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click gives it
        """Names of the commands in the order of use, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click gives it
        """Import the command; None where there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        function = f"{name}_" if iskeyword(name) else name
        command: click.Command = getattr(import_module(f"reactor.cli.{FILES.get(name, name)}"), function)
        if not gc.isenabled():  # this is `main`: what is imported stays, and is not looked at again
            gc.freeze()
            gc.enable()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what there is where a command is misspelled."""
        import difflib

        args = renamed(args)
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]}?" if near else f"Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"no command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click gives it
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _say_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from reactor.runtime.installed_versions import installed

        click.echo(f"reactor {installed('alert-reactor')}")
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version,
    help="Print the version. `reactor version` also prints those of its parts.",
)  # fmt: skip
def cli() -> None:
    """Fail over traffic, workloads and zones by rules that you check, test and simulate first.

    \b
    reactor check rules/                        find mistakes
    reactor test rules/                         run the tests of the rules
    reactor simulate --rules rules/shop.yaml --history outage.jsonl
    reactor run rules/                          run the reactor

    Exit codes: 0 success, 1 the command found a problem or failed, or the settings cannot be used, 2 the command line
    is wrong, 3 the bus cannot be reached.
    """


def main() -> None:
    """Run the command line. A closed pipe (`reactor simulate … | head`) ends it without a trace."""
    gc.disable()  # until the command is imported: to look for garbage among modules costs a tenth of the start
    try:
        own_packages.check()
    except SettingsError as error:
        raise SystemExit(f"reactor: {error}") from error
    cli(prog_name="reactor")


if __name__ == "__main__":
    main()
