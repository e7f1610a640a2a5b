"""Registry of golden files in tests/golden: shared by the scripts that write them and the tests that read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from bus import messages
from bus.envelope import MESSAGES
from bus.messages import MessagePart
from rules.engine.routing import Routing
from rules.rehearsal.rule_tests import suite_loader, tester
from rules.rehearsal.rule_tests.model import RuleTest
from rules.rehearsal.simulator import simulate

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
LIBRARY = ROOT / "rules" / "library"


def bare_messages() -> list[type[MessagePart]]:
    """Messages that travel without an envelope: models of bus.messages that are no part of one with a type."""
    parts: set[type] = set()

    def walk(form: Any) -> None:
        if isinstance(form, type) and issubclass(form, MessagePart):
            if form not in parts:
                parts.update(form.__mro__)
                for field in form.model_fields.values():
                    walk(field.annotation)
        else:
            for one in get_args(form):
                walk(one)

    for message in MESSAGES:
        walk(message)
    models = [one for one in vars(messages).values() if isinstance(one, type) and issubclass(one, MessagePart)]
    return [one for one in models if one not in parts]


def simulations() -> list[str]:
    """The rule tests of the library, whose histories are simulated: the names of their files, without suffix."""
    return [path.name.removesuffix("_test.yaml") for path in sorted(LIBRARY.glob("*_test.yaml"))]


def simulated(name: str) -> str:
    """Give what `reactor simulate` prints for the history of each test of a file, one after the other.

    A line `# <name of the test>` is before the output of each. Outcomes that a test gives are not part of `simulate`:
    each action is Done at once.
    """
    text = (LIBRARY / f"{name}_test.yaml").read_text("utf-8")
    suite = suite_loader.load_suite(text, f"{name}_test.yaml", lambda file: (LIBRARY / file).read_text("utf-8"))
    return "".join(f"{line}\n" for test in suite.tests for line in (f"# {test.name}", *_lines(suite, test)))


def _lines(suite: suite_loader.RuleTestSuite, test: RuleTest) -> Iterator[str]:
    history = tester.history(test)
    return simulate(Routing.of(suite.rules), history, until=max((at for at, _ in history), default=0.0) + 600)


def value_paths(value: Any, at: str = "") -> Iterator[str]:
    """Give where there is a value that is more than nothing: keys of mappings by name (members, clusters) count as one.

    `word` is such a name: `scripts/gen-golden-groups.py` gives it to all of them.
    """
    if isinstance(value, dict):
        for key, one in value.items():
            yield from value_paths(one, f"{at}.{key if key.isidentifier() and key != 'word' else '*'}")
    elif isinstance(value, list):
        for one in value:
            yield from value_paths(one, f"{at}[]")
    elif value not in (None, "", 0, False):
        yield at
