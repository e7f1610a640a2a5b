"""Ends a process of the demo's world with the demo, whatever ends that: also a kill -9.

The child asks for it itself, as its first deed: code between fork and exec would run beside the parent's threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends. Linux only; elsewhere the parent's orderly stop has to do.

    Raises SystemExit where the parent has ended already.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before this took effect
        raise SystemExit(1)
