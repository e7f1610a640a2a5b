"""`reactor pause` and `reactor resume`: a global stop, or one for some rules, with who and why."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import click

from bus.messages import Pause, Resume
from reactor.cli.shared.asking import Asker, asking, finish, look, send
from reactor.cli.shared.naming import near
from reactor.cli.shared.options import Duration
from reactor.cli.shared.outcome import told
from reactor.runtime.durations import duration
from reactor.runtime.errors import SettingsError
from reactor.views.pausing import matching, pause_plan, pause_seen, resumption_seen
from rules.core.group import Group
from rules.engine.pauses import PAUSES
from rules.rulefile.targets import matches


@click.command()
@click.argument("pattern")
@click.option("--for", "for_", type=Duration(), metavar="TIME", help="How long: 10m, 2h. Default: until resumed.")
@asking
def pause(asker: Asker, pattern: str, for_: float | None) -> None:
    """Pause the rules whose names match PATTERN: they take no action until you resume them. `*` means all rules.

    With --for the pause ends by itself, also after restarts. Held actions are then carried out at once. If there are
    several pauses, the one that ends last counts. A shorter one does not end it; only `reactor resume` does.

    No action begins later than two seconds after the command. A write that has begun is finished. A paused rule
    continues to watch: when you resume it and the cause is still there, it acts at once. `reactor zone abort` and
    `reactor zone failback` work during a pause too.

    Exit code: 0; 1 if it is not confirmed; 3 if the bus cannot be reached.
    """
    with told():
        groups = _meant(look(asker.settings, asker.bus_url), pattern)
        length = f"for {duration(for_)}" if for_ is not None else "until they are resumed"
        asker.confirmed(pause_plan("pause", pattern, groups, f", {length}"))

        def make(at: datetime) -> Pause:
            return Pause(rule=pattern, for_seconds=for_, **asker.words(at))

        finish(asker, send(asker, make, lambda found, at: pause_seen(found, make(at))))


@click.command()
@click.argument("pattern")
@asking
def resume(asker: Asker, pattern: str) -> None:
    """Resume the rules whose names match PATTERN.

    Windows continue during a pause: a rule whose toleration time is over acts at once. The plan names the objects with
    held actions.

    Exit code: 0; 1 if it is not confirmed; 3 if the bus cannot be reached.
    """
    with told():
        groups = _meant(look(asker.settings, asker.bus_url), pattern)
        asker.confirmed(pause_plan("resume", pattern, groups))
        seen = partial(resumption_seen, pattern=pattern)
        finish(asker, send(asker, lambda at: Resume(rule=pattern, **asker.words(at)), seen))


def _meant(groups: Iterable[Group], pattern: str) -> list[Group]:
    """Give the groups of the rules that are meant. Raises SettingsError where there are rules, and none is."""
    groups = list(groups)
    meant = matching(groups, pattern)
    own = [group.rule for group in groups if not group.rule.startswith("@")]
    paused = any(group.rule == PAUSES and matches(pattern, group.object) for group in groups)
    if own and not meant and not paused:
        raise SettingsError(near(pattern, own, "rule is called"))
    return meant
