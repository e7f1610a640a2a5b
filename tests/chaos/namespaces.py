"""Network namespaces: a reactor with a cable of its own, which can be pulled out.

The whole run lives in user and network namespaces that it may do anything in, so it needs no root. A bridge takes the
place of the switch. A cable that is taken off the bridge drops what is sent through it, and tells neither end: no
reset, no refusal, as when a switch between two hosts fails.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

SWITCH, OURS = "br0", "10.77.0.1"
CLONE_NEWNET = 0x40000000
APART = ("unshare", "--user", "--map-root-user", "--net")
INSIDE = "CHAOS_APART"
"""In the environment of a run that has gone apart: nothing here may touch the network of the machine."""
_TRIAL = "ip link add br0 type bridge && ip link add name one type veth peer name two && unshare --net true"


@cache
def lacks() -> str:
    """Reason why there are no network namespaces here; empty: there are."""
    if missing := [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]:
        return f"no {' and no '.join(missing)}: apt-get install util-linux iproute2 (Debian)"
    done = subprocess.run([*APART, "sh", "-c", _TRIAL], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"no network namespaces without root: {done.stderr.decode().strip()}"


def go_apart() -> None:
    """Restart this program in namespaces of its own; there, make the switch, with our own address on it."""
    if INSIDE not in os.environ:
        command = [*APART, sys.executable, *sys.orig_argv[1:]]
        os.execvpe(command[0], command, {**os.environ, INSIDE: "1"})  # noqa: S606 - no shell
    _ip("link", "set", "lo", "up")
    _ip("link", "add", SWITCH, "type", "bridge", "forward_delay", "0")
    _ip("addr", "add", f"{OURS}/24", "dev", SWITCH)
    _ip("link", "set", SWITCH, "up")


def plug(link: str) -> None:
    """Put a cable into the switch."""
    _ip("link", "set", link, "master", SWITCH)


def unplug(link: str) -> None:
    """Pull it out: from now on nothing comes through, either way."""
    _ip("link", "set", link, "nomaster")


@contextmanager
def apart(address: str) -> Iterator[str]:
    """Be in a new namespace with this address, so that who is forked lives there; gives our end of its cable.

    Without an address: stay where we are. For a process without threads only.
    """
    if not address:
        yield ""
        return
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    libc, us = ctypes.CDLL(None, use_errno=True), os.getpid()
    outside = os.getppid()  # the process that ordered it has stayed in its own namespace
    link = f"m{address.rpartition('.')[2]}"
    _done(libc.unshare(CLONE_NEWNET))
    _ip("link", "set", "lo", "up")
    _ip("link", "add", "name", "eth0", "type", "veth", "peer", "name", link, "netns", str(outside))
    _ip("addr", "add", f"{address}/24", "dev", "eth0")
    _ip("link", "set", "eth0", "up")
    try:
        yield link
    finally:
        if os.getpid() == us:
            _done(libc.setns(home, CLONE_NEWNET))
            _ip("link", "set", link, "up")
            plug(link)
        os.close(home)


def is_apart(pid: int) -> bool:
    """True if the process is in another network namespace than this one."""
    return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def connect(pid: int, address: str, *, link: str) -> None:
    """Give a process that lives apart a cable into our switch, and this address at its end."""
    _ip("link", "add", "name", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip_of(pid, "link", "set", "lo", "up")
    _ip_of(pid, "link", "set", "eth0", "up")
    _ip_of(pid, "address", "add", f"{address}/24", "dev", "eth0")
    _ip("link", "set", link, "up")
    plug(link)


def mislead(pid: int, address: str, hardware: str) -> None:
    """Let a process send what is for this address to another hardware address."""
    _ip_of(pid, "neighbour", "replace", address, "lladdr", hardware, "nud", "permanent", "dev", "eth0")


def lead(pid: int, address: str) -> None:
    """Let it find out for itself again where the address is."""
    _ip_of(pid, "neighbour", "delete", address, "dev", "eth0")


def _done(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _ip_of(pid: int, *words: str) -> None:
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words], check=True)
