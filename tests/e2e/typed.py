"""The command `reactor` of a shell whose start does not wait for its imports: it is forked, as in forked.py.

The program that the shell starts hands its words, folder, environment and descriptors to this process, which has the
fork server make a reactor of them; it passes on signals, and ends as that ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import reduction
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any

from reactor.cli.main import main
from reactor.runtime.failpoints import ENVIRONMENT
from tests.e2e.forked import FORKS

_NUMBERS = count()
PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
here = socket.socket(socket.AF_UNIX)
here.connect({address!r})
said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(here, [len(said).to_bytes(4, "big")], [0, 1, 2])
here.sendall(said)
answers = here.makefile("r")
pid = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(answers.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextmanager
def typed(folder: Path) -> Iterator[None]:
    """Have the program `reactor` in this folder, until the block ends: then those that still run are killed."""
    address = f"\0reactor-{os.getpid()}-{next(_NUMBERS)}"  # a path may be too long, as pytest's are
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        program = folder / "reactor"
        program.write_text(PROGRAM.format(python=sys.executable, address=address))
        program.chmod(0o755)
        callers: list[socket.socket] = []
        Thread(target=_serve, args=(server, callers), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)  # ends `accept`
            for caller in callers:
                with suppress(OSError):  # its command has ended
                    caller.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket, callers: list[socket.socket]) -> None:
    with suppress(OSError):  # it was shut down
        while True:
            caller, _ = server.accept()
            callers.append(caller)
            Thread(target=_run, args=(caller,), daemon=True).start()


def _run(caller: socket.socket) -> None:
    with caller:
        size, descriptors, _, _ = socket.recv_fds(caller, 4, 3)
        said = caller.makefile("rb").read(int.from_bytes(size, "big"))
        process = FORKS.Process(target=_be, args=(*json.loads(said), [_Descriptor(one) for one in descriptors]))
        process.start()
        for one in descriptors:
            os.close(one)
        caller.sendall(f"{process.pid}\n".encode())
        if process.sentinel not in wait([process.sentinel, caller]):
            process.kill()  # its shell's program was killed
        process.join()
        with suppress(BrokenPipeError):
            caller.sendall(f"{process.exitcode}\n".encode())


class _Descriptor:
    """A descriptor on its way to a forked process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (reduction.DupFd(self._number),)


def _taken(descriptor: Any) -> int:
    return int(descriptor.detach())


def _be(words: Sequence[str], folder: str, environment: dict[str, str], descriptors: Sequence[int]) -> None:
    """The forked process becomes the command."""
    from tests.chaos import member  # with all that a reactor imports; it is there in what is forked

    member.end_with_parent()
    member.arm(environment.get(ENVIRONMENT, ""))  # it read another environment as it was imported
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the fork server ignores it
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing had it read nothing
    sys.argv = ["reactor", *words]
    main()
