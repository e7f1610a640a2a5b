"""Kinds of sources and rules that a list of what kinds need lacks. Silence about one would be noticed late: by a role
that was not given its permissions, a server that was not asked, or a name that the settings do not have."""

from __future__ import annotations

from rules.catalog import KINDS
from rules.rulefile.model import Rule
from rules.rulefile.sources import Source


def refuse_source(source: Source, where: str, *servers: str) -> None:
    """Raise NotImplementedError for a source that `where` lacks although it names a server, by one of these keys."""
    for key in servers:
        if key in type(source).model_fields:
            msg = f"{type(source).__name__} names a {key}, and has no case in {where}"
            raise NotImplementedError(msg)


def refuse_rule(rule: Rule, where: str) -> None:
    """Raise NotImplementedError for a rule that `where` lacks, unless all that its kind does is to tell people."""
    kind = KINDS.get(type(rule))
    if kind is None or kind.actions:
        msg = f"{type(rule).__name__} acts, and has no case in {where}"
        raise NotImplementedError(msg)
