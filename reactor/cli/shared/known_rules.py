"""The rules for commands that must work also while a rule file is broken: what can be used, and what cannot."""

from __future__ import annotations

from reactor.cli.shared.printing import say
from reactor.rulefiles.snapshot import Snapshot
from reactor.settings.model import Settings
from rules.core.errors import InvalidFiles
from rules.loader import RuleSet, load_rules


def known_rules(settings: Settings) -> tuple[RuleSet, str]:
    """Give the rules of the files that can be used, and what is wrong with the others; empty: nothing is."""
    snapshot = Snapshot.take(settings)
    files, wrong = dict(snapshot.files), [snapshot.unreadable] if snapshot.unreadable else []
    if not settings.rule_files:
        wrong = ["ruleFiles: none given; name at least one rule file, or pass --rules FILE"]
    while True:
        try:
            return load_rules(list(files.items())), "\n".join(wrong)
        except InvalidFiles as error:
            wrong.append(str(error))
            bad = {problem.file for problem in error.problems}
            left = {name: text for name, text in files.items() if name not in bad}
            files = left if len(left) < len(files) else {}  # of no files nothing is wrong, so this ends


def told_rules(settings: Settings, instead: str) -> tuple[RuleSet, bool]:
    """Give the rules that can be used, and whether they are all; where not, say on stderr why, and what that means."""
    rules, problem = known_rules(settings)
    if problem:
        say(f"{instead}: {problem}", err=True)
    return rules, not problem
