"""Times on the command line are written as people write them, and what is printed for people can be read by them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from reactor.cli.main import cli
from reactor.cli.members import _shown
from reactor.cli.shared.options import SecondsType
from reactor.workbench.backtest.backtest_options import BadAsk, sweep
from reactor.workbench.backtest.moments import moment
from rules.rehearsal.simulator import clock
from tests.unit.rules.builders import failover, rule_file

NOW = datetime(2026, 11, 8, tzinfo=UTC)


@pytest.mark.parametrize(("text", "seconds"), [("600", 600), ("10m", 600), ("1h30m", 5400), ("0.5", 0.5)])
def test_a_time_is_a_number_of_seconds_or_as_prometheus_writes_it(text: str, seconds: float) -> None:
    assert SecondsType(0, 100_000).convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "10x", "m", "nan", "-1", "2d", "1 h"])
def test_what_is_no_time_or_too_long_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 0 to 100000 seconds, or a time: 90s, 10m, 1h30m"):
        SecondsType(0, 100_000).convert(text, None, None)


def test_a_backtest_begins_so_long_ago_with_or_without_a_minus() -> None:
    assert moment("7d", NOW) == moment("-7d", NOW) == NOW - timedelta(days=7)
    assert moment("1h30m", NOW) == NOW - timedelta(minutes=90)


def test_a_sweep_takes_times_too() -> None:
    assert sweep("tolerationSeconds=0,30s,10m").values == (0, 30, 600)
    with pytest.raises(BadAsk, match="no duration"):
        sweep("tolerationSeconds=5x5s")


HISTORY = """\
{"at": 0, "observe": {"target": "service/east/shop/a", "status": "Healthy"}}
{"at": 0, "observe": {"target": "service/east/shop/b", "status": "Healthy"}}
{"at": 3665, "observe": {"target": "service/east/shop/a", "status": "Unhealthy", "detail": "HTTP 503"}}
"""


def simulated(folder: Path, *words: str, history: str = HISTORY) -> str:
    (folder / "shop.yaml").write_text(rule_file(failover(backends=[{"service": "a"}, {"service": "b"}])))
    (folder / "past.jsonl").write_text(history)
    command = ["simulate", "--rules", str(folder / "shop.yaml"), "--history", str(folder / "past.jsonl"), *words]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_simulation_for_people_says_when_what_and_why(tmp_path: Path) -> None:
    assert simulated(tmp_path, "-o", "text", "--until", "2h").splitlines() == [
        "01:01:05  web  set east/shop/TrafficSplit/web to a=0, b=1",
        "    PrimaryUnhealthy: the primary has been bad for tolerationSeconds and a secondary is ready",
        "    a: Unhealthy (HTTP 503)",
    ]
    quiet = simulated(tmp_path, "-o", "text", "--until", "10m", history=HISTORY.splitlines()[0])
    assert quiet == "nothing happens until 00:10:00\n"


def test_a_simulation_for_scripts_stays_lines_of_json(tmp_path: Path) -> None:
    plain = simulated(tmp_path)
    assert simulated(tmp_path, "-o", "json") == plain
    assert [json.loads(line)["action"] for line in plain.splitlines()] == ["SetWeights"]


@pytest.mark.parametrize(("second", "shown"), [(0, "00:00:00"), (61.5, "00:01:01.5"), (90_061.25, "1d 01:01:01.25")])
def test_the_clock_of_a_simulation(second: float, shown: str) -> None:
    assert clock(second) == shown


def test_the_fleet_has_one_line_for_each_process() -> None:
    partitions = [
        {
            "partition": number,
            "owner": "two" if number == 7 else "one",
            "alive": number != 9,
            "position": 1,
            "unread": 1,
        }
        for number in range(64)
    ]
    shown = _shown({"members": [], "processes": [], "partitions": partitions})
    assert [line.split() for line in shown.splitlines()] == [
        ["OWNER", "ALIVE", "COUNT", "PARTITIONS", "UNREAD"],
        ["one", "no", "1", "9", "1"],
        ["one", "yes", "62", "0-6", "8", "10-63", "62"],
        ["two", "yes", "1", "7", "1"],
    ]


def options(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Parameter]]:
    """Each parameter of each command."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from options(found, (*path, name))
    else:
        yield from ((f"{' '.join(path)} {one.opts[0]}", one) for one in command.params)


def test_each_option_that_is_a_time_takes_10m() -> None:
    times = {name: one for name, one in options(cli) if one.make_metavar(click.Context(cli)) == "TIME"}
    numbers = {name for name, one in options(cli) if isinstance(one.type, click.types.FloatParamType)}
    assert numbers == {"simulate --hours"}, "a number is no time; this one is in hours by its name"
    assert len(times) >= 8
    for name, one in times.items():
        if name.startswith(("backtest --from", "backtest --to")):
            continue  # moments, tested above
        assert one.type.convert("10m", one, None) == 600, name
