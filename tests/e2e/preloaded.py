"""Everything that a reactor imports once it starts, for processes that are forked (forked.py)."""

from __future__ import annotations

import gc
from importlib import import_module

from reactor.cli.main import COMMANDS, FILES
from tests.chaos.member import load_everything

load_everything()
for command in COMMANDS:
    name = command.replace("-", "_")
    import_module(f"reactor.cli.{FILES.get(name, name)}")
gc.collect()
gc.freeze()  # what is shared with the forked stays shared
