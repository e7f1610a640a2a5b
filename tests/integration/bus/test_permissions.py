"""Permissions of each role on a real nats-server: every role against every subject."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import nats
import pytest
import yaml
from click.testing import CliRunner
from nats.aio.client import Client

from bus import subjects, topology
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.jetstream import Credentials, JetStreamBus, provision
from bus.jetstream.provisioning import paused, resume
from bus.messages import Health, Observation
from bus.permissions import PROCESSES, ROLES, Permissions, of_person, of_role, of_source
from bus.port import Outgoing
from bus.server_users import configuration
from bus.testing.memory_parts import matches
from bus.topology import EXECUTORS, FACTS, GROUPS, INBOX, PARKED, ROUTERS, Queue
from reactor.cli.main import cli
from reactor.process.app import App
from reactor.runtime.clock import Clock
from reactor.settings.model import Settings
from reactor.webhook.webhook_server import IN_HANDS_MAX
from tests.contract.bus.servers import Configured
from tests.integration.bus.authority import jetstream
from tests.integration.webhook.reception import JSON
from tests.unit.webhook.builders import alert, body

PASSWORD = "right"
USERS = [
    *map(of_role, ROLES),
    of_person("ann", "operator"),
    of_person("bob", "zones"),
    of_source("backup-check"),
    of_source("other"),
]
NAMES = [one.user for one in USERS]
ACTION = subjects.action(0, "SetWeights", "x")
SUBJECTS = {
    subjects.observation("backup-check", "x"): {"backup-check"},
    subjects.observation("other", "x"): {"other"},
    subjects.inventory("cmdb", "x"): set(),
    subjects.webhook("am"): {"receiver"},
    subjects.parked("am"): {"router", "receiver"},
    subjects.excess("backup-check"): {"router"},
    subjects.command("pause", "operator"): {"operator"},
    subjects.command("pause", "web"): {"web"},
    subjects.command("pause", "reactor"): {"reactor"},
    subjects.command("isolatezone", "web"): set(),
    subjects.command("resume", "operator"): {"operator"},
    subjects.command("approve", "operator"): {"operator"},
    subjects.command("isolatezone", "operator"): set(),
    subjects.command("pause", "zones"): {"zones"},
    subjects.command("isolatezone", "zones"): {"zones"},
    subjects.command("failbackzone", "zones"): {"zones"},
    subjects.command("pause", "ann"): {"ann"},
    subjects.command("isolatezone", "ann"): set(),
    subjects.command("isolatezone", "bob"): {"bob"},
    subjects.command("pause", "viewer"): set(),
    "reactor.commands.pause": set(),
    subjects.observed(0, "x", "y"): {"observer", "router", "decider"},
    subjects.fact(0, "route", "x"): {"observer", "router", "executor"},
    subjects.fact(0, "pause", "x"): {"router"},
    subjects.fact(0, "isolatezone", "x"): {"router"},
    subjects.fact(0, "outcome", "x"): {"executor"},
    subjects.fact(0, "acquirerequest", "x"): {"decider"},
    subjects.fact(0, "acquirereply", "x"): {"decider"},
    ACTION: {"decider"},
    subjects.owner(0): {"decider"},
    subjects.decision(0, "x"): {"decider"},
    subjects.decision(subjects.COMMANDS, "x"): {"decider", "router"},
    "$JS.API.STREAM.MSG.GET.REACTOR_DECISIONS": {
        "decider",
        "router",
        "web",
        "viewer",
        "operator",
        "zones",
        "ann",
        "bob",
    },
    subjects.refresh("x"): {"decider"},
    subjects.wanted(0): {"executor"},
    subjects.alive("x"): {*PROCESSES},
    "$KV.reactor_groups.0.group.x": {"decider"},
    "$KV.reactor_groups.probe": {*PROCESSES},
    "$KV.reactor_groups.commands.position": {"decider", "router"},
    "$KV.reactor_groups.0.position": {"decider"},
    "$KV.reactor_leases.x": {*PROCESSES},
    "$KV.reactor_intents.x": {"executor"},
    "$KV.reactor_alerts.x": {"router"},
    "$KV.reactor_templates.x": {"observer", "executor"},
    "$KV.reactor_links.x": {"executor", "web"},
    "$JS.API.CONSUMER.MSG.NEXT.REACTOR_ACTIONS.executors": {"executor"},
    "$JS.API.CONSUMER.MSG.NEXT.REACTOR_INBOX.routers": {"router"},
    "$JS.ACK.REACTOR_ACTIONS.executors.1.1.1.1.1": {"executor"},
    "$JS.ACK.REACTOR_INBOX.routers.1.1.1.1.1": {"router"},
    "$JS.API.CONSUMER.MSG.NEXT.REACTOR_EXCESS.excess": {"router"},
    "$JS.API.CONSUMER.PAUSE.REACTOR_FACTS.x": set(),
    "$JS.API.CONSUMER.PAUSE.REACTOR_ACTIONS.executors": {"executor"},
    "$JS.API.CONSUMER.PAUSE.REACTOR_INBOX.routers": {"router"},
    "$JS.API.CONSUMER.DELETE.REACTOR_FACTS.x": {"decider", "web"},
    "$JS.API.CONSUMER.DELETE.REACTOR_ACTIONS.executors": set(),
    "$JS.API.CONSUMER.DELETE.REACTOR_INBOX.routers": set(),
    "$JS.API.CONSUMER.CREATE.REACTOR_FACTS.x": {"decider", "web"},
    "$JS.API.CONSUMER.CREATE.REACTOR_ACTIONS.x": set(),
    "$JS.API.CONSUMER.CREATE.REACTOR_INBOX.x": set(),
    "$JS.API.CONSUMER.CREATE.REACTOR_DECISIONS.x": {"web"},
    "$JS.API.CONSUMER.CREATE.KV_reactor_groups.x": {"decider", "web"},
    "$JS.API.CONSUMER.DURABLE.CREATE.REACTOR_ACTIONS.x": set(),
    "$JS.API.STREAM.DELETE.REACTOR_ACTIONS": set(),
    "$JS.API.STREAM.PURGE.REACTOR_INBOX": set(),
    "$JS.API.STREAM.MSG.DELETE.REACTOR_DECISIONS": set(),
    "$JS.API.STREAM.SNAPSHOT.REACTOR_DECISIONS": set(),
    "$JS.API.STREAM.MSG.GET.REACTOR_ACTIONS": {"decider"},
    "$JS.API.STREAM.MSG.GET.REACTOR_INBOX": set(),
    "$JS.API.DIRECT.GET.REACTOR_DECISIONS": {"web", "viewer", "operator", "zones", "ann", "bob"},
    "$JS.API.DIRECT.GET.KV_reactor_templates": {"observer", "executor"},
    "$JS.API.DIRECT.GET.KV_reactor_links": {"executor", "web"},
    "$SYS.REQ.SERVER.PING": set(),
    "_INBOX.x": set(),
    "_INBOX_executor.x": set(),
    "_INBOX_reactor.x": set(),
}
"""Users that may publish on each subject, besides `reactor`, which may what its five parts may."""
ONLY_TO_MAKE = {"$JS.API.STREAM.UPDATE.REACTOR_FACTS", "$JS.API.CONSUMER.DURABLE.CREATE.REACTOR_ACTIONS.executors"}


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedServer]:
    """A server with a user for each role, as `reactor bus permissions` writes them, with all streams."""
    for one in USERS:
        monkeypatch.setenv(f"NATS_PASSWORD_{one.user.upper().replace('-', '_')}", PASSWORD)
    async with Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{configuration(USERS)}") as server:
        async with bus_of(server, "reactor") as bus:
            await provision(bus)
        yield server


@asynccontextmanager
async def client_of(server: EmbeddedServer, user: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client, and what it may not do, as the server says it."""
    denied: list[str] = []

    async def error(what: Exception) -> None:
        denied.append(str(what).lower())

    client = await nats.connect(
        server.url, user=user, password=PASSWORD, inbox_prefix=f"_INBOX_{user}", error_cb=error, allow_reconnect=False
    )
    try:
        yield client, denied
    finally:
        await client.close()


async def refused_all(client: Client, denied: list[str]) -> None:
    """Wait for the refusal of a subject that no role may use: those of all before it have come by then."""
    await client.publish("of.nobody", b"")
    async with asyncio.timeout(60):
        while not any("of.nobody" in text for text in denied):
            await asyncio.sleep(0.01)
    denied[:] = [text for text in denied if "of.nobody" not in text]


@asynccontextmanager
async def bus_of(server: EmbeddedServer, user: str, *, read_only: bool = False) -> AsyncIterator[JetStreamBus]:
    credentials = Credentials(user=user, password=PASSWORD, inbox_prefix=f"_INBOX_{user}")
    async with JetStreamBus.connect(
        server.url, name="test", credentials=credentials, timeout=timedelta(seconds=10), read_only=read_only
    ) as bus:
        yield bus


def allowed(user: str) -> set[str]:
    """Subjects on which this user may publish, by the matrix of all roles."""
    if user != "reactor":
        return {one for one, users in SUBJECTS.items() if user in users}
    own = {subjects.command("pause", "web")}  # the page gives commands in its user's name
    return {one for one, users in SUBJECTS.items() if users & {"reactor", *PROCESSES}} - own | ONLY_TO_MAKE


@pytest.mark.parametrize("user", NAMES)
async def test_each_role_may_publish_where_its_work_is_and_nowhere_else(server: EmbeddedServer, user: str) -> None:
    everything = {*SUBJECTS, *ONLY_TO_MAKE}
    async with client_of(server, user) as (client, denied):
        for subject in everything:
            # It is stored nowhere: what is expected cannot hold, and an API request is no request of its kind.
            await client.publish(subject, b"[]", headers={"Nats-Expected-Stream": "no-stream-has-this-name"})
        await refused_all(client, denied)
    refused = {subject for subject in everything if any(f'"{subject.lower()}"' in text for text in denied)}
    assert everything - refused == allowed(user)


@pytest.mark.parametrize("user", NAMES)
async def test_each_role_reads_its_own_inbox_and_no_other(server: EmbeddedServer, user: str) -> None:
    wanted = {f"_INBOX_{user}.>", *(one for one in of_any(user).subscribe if not one.startswith("_INBOX"))}
    foreign = [f"_INBOX_{name}.>" for name in NAMES if name != user]
    asked = {*wanted, *foreign, "_INBOX.>", ">", "reactor.>", "$KV.>", "$JS.>", "$SYS.>", "reactor.actions.>"}
    async with client_of(server, user) as (client, denied):
        for subject in asked:
            await client.subscribe(subject)
        await refused_all(client, denied)
    refused = {subject for subject in asked if any(f'subscription to "{subject.lower()}"' in text for text in denied)}
    assert asked - refused == wanted


def of_any(user: str) -> Permissions:
    return next(one for one in USERS if one.user == user)


def test_the_matrix_knows_every_subject_that_a_role_may_publish_on() -> None:
    """A right that is given and not tried here is a right that was given by mistake."""
    known = [*SUBJECTS, *ONLY_TO_MAKE]
    classes = {one.split(".")[1] for one in known if one.startswith("reactor.")}
    for user in USERS:
        for pattern in user.publish:
            if pattern.startswith("reactor."):
                assert pattern.split(".")[1] in classes, (user.user, pattern)
            if ".CONSUMER.CREATE." in pattern or ".PAUSE." in pattern or ".DELETE." in pattern:
                assert user.user in ("reactor", *PROCESSES), (user.user, pattern)
            assert not matches(pattern, "_INBOX_reactor.x"), (user.user, pattern)


async def test_who_may_only_look_reads_everything_without_a_consumer(server: EmbeddedServer) -> None:
    said = Observation(target="service/east/shop/a", status=Health.HEALTHY, observed_at=Clock().now())
    async with bus_of(server, "reactor") as bus:
        await bus.store(GROUPS).put("0.group.a", b"1", revision=None)
        await bus.store(GROUPS).put("0.group.gone", b"1", revision=None)
        await bus.store(GROUPS).delete("0.group.gone", revision=None)
        body = encode(said, id="1", source="/test", time=said.observed_at)
        wrote = [Outgoing(subjects.observed(1, said.target, f"o{n}"), body, f"f{n}") for n in range(1200)]
        await bus.publish_all(wrote)
    async with bus_of(server, "viewer", read_only=True) as bus:
        assert [one.key for one in await bus.store(GROUPS).entries("*.group.>")] == ["0.group.a"]
        seen = []
        async with bus.read(FACTS, subjects.facts(1), after=0) as reading:
            while not reading.current:
                seen += [one.subject for one in await reading.next(timedelta(seconds=1))]
        assert seen == [one.subject for one in wrote]
        assert abs(await bus.probe() - Clock().now()) < timedelta(seconds=5)
        assert bus.connection.errors == {}


async def test_a_viewer_cannot_pause_a_consumer(server: EmbeddedServer) -> None:
    async with client_of(server, "viewer") as (client, denied):
        body = json.dumps({"pause_until": "2030-01-01T00:00:00Z"}).encode()
        for queue in (EXECUTORS, ROUTERS):
            await client.publish(f"$JS.API.CONSUMER.PAUSE.{queue.stream}.{queue.name}", body, reply=client.new_inbox())
        await refused_all(client, denied)
    assert len(denied) == 2
    async with bus_of(server, "reactor") as bus:
        for queue in (EXECUTORS, ROUTERS):
            info = await bus.connection.api(f"CONSUMER.INFO.{queue.stream}.{queue.name}", {})
            assert not info.get("paused")


@pytest.mark.parametrize(("role", "queue"), [("executor", EXECUTORS), ("router", ROUTERS), ("reactor", EXECUTORS)])
async def test_who_takes_from_a_queue_may_resume_it(server: EmbeddedServer, role: str, queue: Queue) -> None:
    body = {"pause_until": "2030-01-01T00:00:00Z"}
    async with bus_of(server, role) as bus:
        await bus.connection.api(f"CONSUMER.PAUSE.{queue.stream}.{queue.name}", body)
        assert [*await paused(bus, [queue])] == [queue]
        await resume(bus, queue)
        assert not await paused(bus, [queue])
        assert not bus.connection.denied


async def test_every_process_role_passes_the_start_of_a_process(server: EmbeddedServer) -> None:
    for role in PROCESSES:
        async with bus_of(server, role) as bus:
            assert not await provision(bus)
            await bus.probe()


@pytest.mark.parametrize("words", [["status"], ["members"], ["audit", "export"]])
async def test_the_commands_for_looking_work_for_a_viewer(server: EmbeddedServer, words: Sequence[str]) -> None:
    environment = {"REACTOR_BUS__USER": "viewer", "REACTOR_BUS__PASSWORD": PASSWORD}
    done = await asyncio.to_thread(CliRunner(env=environment).invoke, cli, [*words, "--bus", server.url])
    assert done.exit_code in (0, 1), done.output
    assert "ermission" not in done.output


async def test_a_receiver_alone_stores_a_large_post_whole_beside_the_inbox(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """No router runs, and none is waited for: two messages are in the inbox, where windows wait for them."""
    hook = "- {name: am, kind: AlertmanagerWebhook, target: 'service/east/shop/{service}'}\n"
    (tmp_path / "rules.yaml").write_text(f"apiVersion: reactor/v1\nsources:\n{hook}")
    login = {"url": server.url, "user": "receiver", "password": PASSWORD}
    settings = Settings.model_validate(
        {"ruleFiles": [str(tmp_path / "rules.yaml")], "receiver": {"listen": "127.0.0.1:0"}, "bus": login}
    )
    large = body(*(alert(f"{one:016x}", service=f"s{one}") for one in range(4_900)))
    async with (
        App(settings, roles=frozenset({"receiver"})) as app,
        aiohttp.ClientSession() as session,
        session.post(f"{app.receiver_url}/v1/alerts/am", data=io.BytesIO(large), headers=JSON) as answer,
    ):
        assert (answer.status, await answer.json()) == (200, {"taken": 4_900, "quarantined": 0})
    async with bus_of(server, "reactor") as bus:
        inbox, beside = await bus.extent(INBOX), await bus.extent(PARKED)
    assert inbox.last + 1 - inbox.first == IN_HANDS_MAX
    assert beside.last + 1 - beside.first > IN_HANDS_MAX


async def test_the_audit_says_which_user_gave_a_command_whatever_name_is_given_beside_it(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """Ann may pause, and says that she is Bob."""
    (tmp_path / "rules.yaml").write_text(
        "apiVersion: reactor/v1\nrules:\n- {name: one, kind: Notification, match: 'service/**'}\n"
    )
    login = {"url": server.url, "user": "reactor", "password": PASSWORD}
    settings = Settings.model_validate(
        {"ruleFiles": [str(tmp_path / "rules.yaml")], "receiver": {"listen": "127.0.0.1:0"}, "bus": login}
    )
    environment = {"REACTOR_BUS__USER": "ann", "REACTOR_BUS__PASSWORD": PASSWORD, "REACTOR_BUS__URL": server.url}
    words = ["pause", "one", "--comment", "test", "--by", "bob", "--yes"]
    async with App(settings):
        done = await asyncio.to_thread(CliRunner(env=environment).invoke, cli, words)
        assert done.exit_code == 0, done.output
        assert 'paused by ann as "bob" since' in done.output
        records, table, documents = [
            await asyncio.to_thread(CliRunner(env=environment).invoke, cli, ["audit", "export", *more])
            for more in ([], ["-o", "table"], ["-o", "yaml"])
        ]
        words = ["resume", *words[1:], "-o", "json"]
        resumed = await asyncio.to_thread(CliRunner(env=environment).invoke, cli, words)
    [record] = [json.loads(line) for line in records.stdout.splitlines() if '"Pause' in line or "said Pause" in line]
    assert record["because"] == ['ann as "bob" said Pause: test']
    assert (record["facts"][0]["user"], record["facts"][0]["by"]) == ("ann", "bob")
    assert list(yaml.safe_load_all(documents.stdout)) == [json.loads(line) for line in records.stdout.splitlines()]
    lines = [line.split() for line in table.stdout.splitlines()]
    assert lines[0] == ["AT", "RULE", "OBJECT", "ACTIONS", "HELD"]
    assert len(lines) == 1 + len(records.stdout.splitlines())
    result = json.loads(resumed.stdout)
    assert (result["processed"], "resumed" in result["result"]) == (True, True)
    assert "resume" in resumed.stderr  # the plan


def test_bus_permissions_prints_what_was_asked_for() -> None:
    done = CliRunner().invoke(cli, ["bus", "permissions", "--role", "viewer", "--source", "backup-check"])
    assert done.exit_code == 0
    assert done.output == configuration([of_role("viewer"), of_source("backup-check")])
    assert "$NATS_PASSWORD_BACKUP_CHECK" in done.output
    assert topology.ACTIONS.name not in done.output.partition("backup-check")[2]


@pytest.mark.parametrize(("login", "variable"), [("password", "$NATS_PASSWORD_A_B"), ("nkey", "$NATS_NKEY_A_B")])
def test_users_are_data_too(login: str, variable: str) -> None:
    words = ["bus", "permissions", "--source", "a-b", "--role", "reactor", "--login", login, "-o"]
    found = json.loads(CliRunner().invoke(cli, [*words, "json"]).stdout)
    assert yaml.safe_load(CliRunner().invoke(cli, [*words, "yaml"]).stdout) == found
    reactor, source = found["users"]
    assert (source["user"], source[login], "allowResponses" in source) == ("a-b", variable, False)
    assert tuple(source["publish"]) == of_source("a-b").publish
    assert reactor["allowResponses"] == {"max": 1, "expiresSeconds": 10}


def test_commands_of_nsc_are_no_data() -> None:
    done = CliRunner().invoke(cli, ["bus", "permissions", "--login", "jwt", "-o", "json"])
    assert (done.exit_code, "--login jwt" in done.output) == (2, True)


def test_a_person_has_a_user_of_their_own() -> None:
    done = CliRunner().invoke(cli, ["bus", "permissions", "--person", "ann=operator"])
    assert done.output == configuration([of_person("ann", "operator")])
    assert '"reactor.commands.pause.ann"' in done.output
    assert "operator_" not in done.output
    for wrong in ("ann", "ann=reactor", "=viewer"):
        refused = CliRunner().invoke(cli, ["bus", "permissions", "--person", wrong])
        assert refused.exit_code == 2
        assert "is not NAME=ROLE" in refused.output
