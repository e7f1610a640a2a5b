"""docker-compose.yml without Docker: each service is a process with its container's command, files, user and rights.

Each has a network namespace with an address of its own, all on one bridge. Each has a root of its own: this machine's
programs instead of the image's, the files that Compose mounts, and nothing that it may write but its volumes. What only
Docker has is not here: its name server (names are in /etc/hosts), published ports, limits.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.processes import end_with_us
from tests.e2e.servers import binary
from tests.e2e.waiting import until_told
from tests.kube import pods

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text("utf-8")
NOBODY, HAPROXY = "65534:65534", "99:99"
IMAGES = {  # what the image says where the Compose file says nothing: entrypoint and user
    "nats": ([], "0:0"),
    "prom/prometheus": (["prometheus"], NOBODY),
    "prom/alertmanager": (["alertmanager"], NOBODY),
    "haproxy": ([], HAPROXY),
    "alert-reactor": (["reactor"], re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)[-1]),
}
COMMAND = {"alert-reactor": ["run", "--config", "/etc/reactor/reactor.yaml"]}
OWNED = {"/prometheus": NOBODY, "/alertmanager": NOBODY}
"""Folders that an image has made for its user: a new volume there belongs to that user, any other one to root."""
HEALTH = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8485/readyz', timeout=2)"
SUBNET = "10.89.0"
SWITCH = f"""ip link set lo up; ip link add br0 type bridge forward_delay 0
ip address add {SUBNET}.1/24 dev br0; ip link set br0 up"""


def why_not() -> str:
    """Say why this cannot be done here; "" when it can."""
    missing = [tool for tool in ("ip", "nsenter", "curl", "wget") if shutil.which(tool) is None]
    return pods.why_not() or (f"no {' and no '.join(missing)} on this machine" if missing else "")


def _programs(hidden: Collection[str]) -> list[Path]:
    """Give the folders of programs that would not be seen, such as an environment below /tmp."""
    folders = [ROOT, Path(sys.prefix), Path(sys.base_prefix), *map(Path, os.environ["PATH"].split(os.pathsep))]
    wanted = sorted({one for one in folders if one.is_dir() and one.parts[1:2] and one.parts[1] in hidden})
    return [one for one in wanted if not any(other in one.parents for other in wanted)]


@dataclass
class Composed:
    """Services that `docker compose up` starts."""

    folder: Path
    services: dict[str, Any]
    networks: dict[str, int] = field(default_factory=dict)
    """The processes whose network namespaces they are, by service; `""`: that of the bridge."""
    running: dict[str, Process] = field(default_factory=dict)

    @property
    def hosts(self) -> dict[str, str]:
        """Names and addresses."""
        return {name: f"{SUBNET}.{number}" for number, name in enumerate(self.services, start=2)}

    async def up(self) -> None:
        """Start all services but those of a profile, each when what it depends on is as it has to be."""
        wanted = [name for name, service in self.services.items() if "profiles" not in service]
        while left := [name for name in wanted if name not in self.running]:
            for name in left:
                before = self.services[name].get("depends_on", {})
                if before.keys() <= self.running.keys():
                    for other, how in before.items():
                        await self._is(other, how["condition"])
                    self.running[name] = await self.start(name)

    async def _is(self, name: str, condition: str) -> None:
        process = self.running[name]
        if condition == "service_completed_successfully":
            assert await process.wait() == 0, self.log(name)
            return

        async def healthy() -> bool:
            assert process.returncode is None, f"{name} has ended:\n{self.log(name)}"
            return (await self.run(name, self._check(name)))[0] == 0

        await until_told(healthy, f"{name} is healthy")

    def _check(self, name: str) -> list[str]:
        [how, *words] = self.services[name].get("healthcheck", {}).get("test", ["CMD", "python", "-c", HEALTH])
        assert how == "CMD"
        return self._here(words)

    def log(self, name: str) -> str:
        """Output of a service."""
        return (self.folder / name / "log").read_text("utf-8", "replace")

    async def start(self, name: str) -> Process:
        """Start one service."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log").open("ab") as log:
            return await self._begun(name, self._command(name), stdout=log, stderr=log)

    async def run(self, name: str, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in a container like the service's, as `docker compose run` does; its exit code and output."""
        process = await self._begun(name, command, stdout=PIPE, stderr=STDOUT)
        said = (await process.communicate())[0].decode()
        return process.returncode or 0, said

    async def curl(self, *words: str) -> str:
        """Output of curl inside the network."""
        command = [*self._inside(""), "curl", "-sS", "--max-time", "5", *words]
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
        return (await process.communicate())[0].decode()

    def _image(self, name: str) -> str:
        return str(self.services[name]["image"]).partition(":")[0]

    def _command(self, name: str) -> list[str]:
        service, image = self.services[name], self._image(name)
        entrypoint = service.get("entrypoint", IMAGES[image][0])
        return self._here([*entrypoint, *service.get("command", COMMAND.get(image, []))])

    def _inside(self, name: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.networks[name]}/ns/net"]

    @staticmethod
    def _here(words: Sequence[str]) -> list[str]:
        """Give the command with programs of this machine."""
        here = list(words)
        if here[0] == "alertmanager":
            here[0] = binary("alertmanager", "prometheus-alertmanager")
        return [sys.executable, *here[1:]] if here[0] == "python" else here

    async def _begun(self, name: str, command: Sequence[str], **channels: Any) -> Process:
        service = self.services[name]
        user, _, group = str(service.get("user", IMAGES[self._image(name)][1])).partition(":")
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        # The one capability lets the user read where Python is installed; it writes nothing by that.
        caps = " ".join(f"--{kind} -all,+dac_read_search" for kind in ("bounding-set", "inh-caps", "ambient-caps"))
        drop = f"setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs {caps}"
        root, script = self._root(name)
        script += f"exec chroot {root} {drop} {shlex.join(command)}\n"
        enter = [*self._inside(name), "unshare", "-m", "--propagation", "private"]
        kept = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
        environment = kept | {"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}  # noqa: S108 - in a root of its own
        environment |= {"PYTHONPATH": str(ROOT)} | service.get("environment", {})
        return await asyncio.create_subprocess_exec(
            *enter, "sh", "-ec", script, env=environment, stdin=DEVNULL, preexec_fn=end_with_us(), **channels
        )

    def _root(self, name: str) -> tuple[Path, str]:
        """Give the folder of its root, and shell lines that make it."""
        root, hosts = self.folder / name / "root", self.folder / "hosts"
        root.mkdir(parents=True, exist_ok=True)
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{at} {one}\n" for one, at in self.hosts.items()))
        own = {"etc", "run", "tmp"}
        lines = [f"mount -t tmpfs tmpfs {root}"]
        for top in sorted(Path("/").iterdir()):
            at = root / top.name
            if top.is_symlink():
                lines.append(f"cp -P {top} {at}")
            elif top.is_dir() and top.name not in own:
                lines.append(f"mkdir {at} && mount --rbind {top} {at}")
        lines += [f"mkdir {root}/{top}" for top in sorted(own)]
        lines += [f"cp -a /etc/. {root}/etc", f"cp {hosts} {root}/etc/hosts"]
        service = self.services[name]
        for volume in service.get("volumes", []):
            source, target, *_ = volume.split(":")
            lines.append(self._mounted(source, f"{root}{target}", target, writable=not volume.endswith(":ro")))
        lines += [f"mount -t tmpfs -o mode=1777 tmpfs {root}{one}" for one in service.get("tmpfs", [])]
        lines += [f"mkdir -p {root}{place} && mount --bind {place} {root}{place}" for place in _programs(own)]
        # Last: what is mounted into it goes on as it is.
        return root, "\n".join([*lines, f"mount -o remount,ro {root}"]) + "\n"

    def _mounted(self, source: str, at: str, target: str, *, writable: bool) -> str:
        if source.startswith("."):
            place = ROOT / source
            touched = f"mkdir -p {at}" if place.is_dir() else f"mkdir -p $(dirname {at}) && touch {at}"
        else:
            place, touched = self.folder / "volumes" / source, f"mkdir -p {at}"
            if not place.exists():
                place.mkdir(parents=True)
                user, _, group = OWNED.get(target, "0:0").partition(":")
                os.chown(place, int(user), int(group))
        bound = f"{touched} && mount --bind {place} {at}"
        return bound if writable else f"{bound} && mount -o remount,bind,ro {at}"

    async def down(self) -> None:
        """End all of it, the last one first."""
        for process in reversed(self.running.values()):
            if process.returncode is None:
                process.terminate()
                with suppress(TimeoutError):
                    async with asyncio.timeout(20):
                        await process.wait()
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    @contextmanager
    def network(self) -> Iterator[None]:
        """Have a namespace for each service, with a cable to one bridge, while the block runs."""
        with ExitStack() as stack:
            for name, script in {"": SWITCH, **dict.fromkeys(self.services, "ip link set lo up")}.items():
                command = ["unshare", "--net", "sh", "-ec", f"{script}; echo; exec sleep infinity"]
                process = stack.enter_context(
                    subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=end_with_us())
                )
                stack.callback(process.kill)
                assert process.stdout is not None
                assert process.stdout.readline(), "no network namespace"
                self.networks[name] = process.pid
            for number, (name, address) in enumerate(self.hosts.items()):
                if self.services[name].get("network_mode") != "none":
                    self._plugged(name, f"v{number}", address)
            yield

    def _plugged(self, name: str, cable: str, address: str) -> None:
        made = f"ip link add name {cable} type veth peer name eth0 netns {self.networks[name]}"
        switch = f"{made} && ip link set {cable} master br0 && ip link set {cable} up"
        own = f"ip address add {address}/24 dev eth0 && ip link set eth0 up"
        for where, script in (("", switch), (name, own)):
            subprocess.run([*self._inside(where), "sh", "-ec", script], check=True)


@asynccontextmanager
async def composed(folder: Path) -> AsyncIterator[Composed]:
    """All services of docker-compose.yml while the block runs; where it fails, the ends of their logs are shown."""
    here = Composed(folder, yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"])
    with here.network():
        try:
            await here.up()
            yield here
        except BaseException:  # whatever the test failed by, a cancellation by its time limit too
            for name in here.running:
                print(f"--- {name}:", here.log(name)[-3000:], sep="\n")
            raise
        finally:
            await here.down()
