"""A reactor on a machine whose wall clock is wrong: a program with the words `3600 run --config …`."""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import partial

from reactor.cli.run import run
from reactor.process import app
from reactor.runtime.clock import Clock


def main() -> None:
    """Be a reactor; the first word says how many seconds its clock is ahead."""
    wrong_by = timedelta(seconds=float(sys.argv[1]))
    vars(app)["Clock"] = partial(Clock, wrong_by=wrong_by)
    run.main(sys.argv[3:], prog_name="reactor")
