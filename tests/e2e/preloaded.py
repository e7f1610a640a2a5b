"""Everything that a reactor imports once it starts, for processes that are forked (forked.py)."""

from __future__ import annotations

import gc
from importlib import import_module

from reactor.cli.main import COMMANDS, FILES
from tests.chaos.member import load_everything

load_everything()
for command in COMMANDS:
    import_module(f"reactor.cli.{FILES.get(command, command)}")
gc.collect()
gc.freeze()  # what is shared with the forked stays shared
