"""A secret of its own in every setting that holds one, and none of them in what the reactor writes, serves or prints.

Each peer echoes what it was sent in its errors, as badly written servers do.
"""

from __future__ import annotations

import asyncio
import base64
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import yaml
from aiohttp import web

from bus import topology
from bus.jetstream import JetStreamBus
from reactor.runtime.errors import SettingsError
from reactor.settings.model import load
from tests.e2e.processes import Child
from tests.e2e.service import Service
from tests.e2e.waiting import until
from tests.ports import free_port
from tests.serving import serving

RULES = """
apiVersion: reactor/v1
sources:
- {name: am, kind: AlertmanagerWebhook, target: 'service/east/shop/{service}'}
- {name: ratio, kind: PrometheusQuery, prometheus: main, query: up, target: 'service/east/shop/{job}', everySeconds: 1}
- {name: nodes, kind: EndpointsWatch, cluster: east}
- {name: key, kind: HttpProbe, url: 'PEER/probe?x=1', target: custom/key, everySeconds: 1, headers: {X-Api-Key: PROBE}}
rules:
- {name: tell, kind: Notification, mode: Enforce, match: 'service/**',
   notify: [chat, hook, pager, ops, am, mail]}
- name: edge
  kind: TrafficFailover
  mode: Enforce
  route: {kind: Webhook, name: edge}
  backends: [{service: a, target: service/east/shop/a}, {service: b, target: service/east/shop/b}]
"""
BROKEN = ("{nonsense", "apiVersion: reactor/v1\nrules: [{name: x, kind: Nope}]\n")
ALERT = {
    "version": "4", "status": "firing", "receiver": "r", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
    "externalURL": "", "groupKey": "k", "truncatedAlerts": 0,
    "alerts": [{"status": "firing", "labels": {"alertname": "Down", "service": "a"}, "annotations": {},
                "generatorURL": "", "startsAt": "2026-01-01T00:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
                "fingerprint": "f"}],
}  # fmt: skip
PAGES = (
    "/api/v1/status", "/api/v1/groups", "/api/v1/rules", "/api/v1/targets", "/api/v1/targets/custom/key",
    "/api/v1/actions", "/api/v1/members", "/api/v1/map", "/api/v1/session", "/api/v1/openapi.json", "/",
)  # fmt: skip
COMMANDS = (
    ("status",), ("status", "-o", "json", "--remembered"), ("members",), ("doctor",), ("bus", "check"),
    ("bus", "status"),
    ("audit", "export"), ("audit", "verify"), ("traffic", "list"), ("schema", "settings"),
)  # fmt: skip


class Canaries:
    """Secrets that no other text has, each in a file too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.values: dict[str, str] = {}

    def text(self, name: str) -> str:
        return self.values.setdefault(name, f"canary{len(self.values):02}x{name}x7f3e9")

    def file(self, name: str) -> str:
        path = self.folder / f"{name}.secret"
        path.write_text(self.text(name) + "\n")
        return str(path)

    def in_(self, text: str) -> set[str]:
        """The names of those that a text contains: as they are, or encoded as HTTP does."""
        found = set()
        for name, value in self.values.items():
            forms = [
                value,
                quote(value),
                *(base64.b64encode(f"{user}:{value}".encode()).decode() for user in ("ann", "reactor")),
            ]
            if any(form in text for form in forms):
                found.add(name)
        return found


class Peer:
    """Every server that the reactor speaks to: it refuses, and echoes the whole request in its answer."""

    def __init__(self) -> None:
        self.got = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = (await request.read()).decode(errors="replace")
        sent = f"{request.method} {request.raw_path} {dict(request.headers)} {body}"
        self.got += sent + "\n"
        code = 500 if "probe" in request.path or "edge" in request.path else 401
        return web.json_response({"status": "error", "error": sent, "message": sent, "kind": "Status"}, status=code)

    async def mail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 peer\r\n")
        while line := await reader.readline():
            self.got += line.decode()
            word = line[:4].upper().strip()
            text = b"250-peer\r\n250 AUTH PLAIN LOGIN" if word == b"EHLO" else b"535 refused: " + line.strip()
            writer.write(text + b"\r\n")
        writer.close()


@asynccontextmanager
async def peering() -> AsyncIterator[tuple[Peer, str, int]]:
    peer, app = Peer(), web.Application()
    app.router.add_route("*", "/{rest:.*}", peer.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        async with serving(peer.mail) as mail_port:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield peer, f"http://127.0.0.1:{runner.addresses[0][1]}", mail_port
    finally:
        await runner.cleanup()


def settings(can: Canaries, url: str, mail: int, bus: int) -> dict[str, Any]:
    """Each setting that holds a secret, with one."""
    host = url.removeprefix("http://")
    kubeconfig = can.folder / "kubeconfig"
    user = {"name": "u", "user": {"token": can.text("kube")}}
    context = {"name": "east", "context": {"cluster": "c", "user": "u"}}
    kubeconfig.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "east", "contexts": [context], "users": [user],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
    }))  # fmt: skip
    key = can.folder / "audit.secret"
    key.write_text(can.text("audit") * 2)
    return {
        "logLevel": "debug",
        "bus": {"url": f"nats://127.0.0.1:{bus}", "user": "reactor", "passwordFile": can.file("bus"), "partitions": 2},
        "receiver": {"listen": "127.0.0.1:0", "bearerTokenFiles": [can.file("receiver")]},
        "web": {"listen": f"127.0.0.1:{free_port()}",
                "users": [{"name": "ann", "role": "operate", "tokenFile": can.file("page")}]},
        "audit": {"keyFile": str(key)},
        "tracing": {"url": f"{url}/v1/traces", "bearerTokenFile": can.file("traces")},
        "prometheus": {
            "main": {"url": url, "basicUser": "ann", "basicPasswordFile": can.file("prometheus")},
            "other": {"url": f"http://ann:{can.text('prometheusUrl')}@{host}"},
        },
        "alertmanager": {"am": {"url": url, "bearerTokenFile": can.file("alertmanager")}},
        "clusters": {"east": {"kubeconfig": str(kubeconfig), "context": "east"}},
        "loadBalancers": {"edge": {"kind": "Webhook", "url": f"{url}/edge", "secret": can.text("edge")}},
        "notifiers": {
            "chat": {"kind": "slack", "url": f"{url}/{can.text('slack')}"},
            "hook": {"kind": "webhook", "url": f"http://ann:{can.text('hook')}@{host}/hook"},
            "pager": {"kind": "pagerduty", "url": f"{url}/pager", "key": can.text("pager")},
            "ops": {"kind": "opsgenie", "url": f"{url}/ops", "keyFile": can.file("opsgenie")},
            "am": {"kind": "alertmanager", "url": f"http://ann:{can.text('amUrl')}@{host}/am"},
            "mail": {"kind": "email", "email": {"host": "127.0.0.1", "port": mail, "tls": "None", "user": "reactor",
                     "passwordFile": can.file("mail"), "from": "a@example.org", "to": ["b@example.org"]}},
        },
    }  # fmt: skip


USED = {"prometheus", "kube", "slack", "hook", "pager", "opsgenie", "amUrl", "probe", "traces"}
"""Credentials that the peer has to have got: else the test would not show that they stay unseen."""


async def test_no_secret_of_the_settings_is_in_anything_it_writes_serves_or_prints(tmp_path: Path) -> None:
    can, port = Canaries(tmp_path), free_port()
    async with peering() as (peer, url, mail):
        given = settings(can, url, mail, port)
        rules = RULES.replace("PEER", url).replace("PROBE", can.text("probe"))
        words = ["--addr", "127.0.0.1", "--port", str(port), "-js", "-sd", str(tmp_path / "js"), "--user", "reactor"]
        nats = Child("nats", ["nats-server", *words, "--pass", can.text("bus")], tmp_path)
        service = Service(tmp_path / "reactor", rules=rules, settings=given)
        service._argv = [*service._argv, "--roles", "all,web"]
        said: dict[str, str] = {}
        async with nats, service:
            await post(service, can.text("receiver"))
            await post(service, "wrong-token")
            await until(lambda: can.in_(peer.got) >= USED, f"the peer has got {USED}", within=90)
            for text in (*BROKEN, rules + "\n# other\n"):
                (service.folder / "rules.yaml").write_text(text)
                service.process.send_signal(signal.SIGHUP)
                await asyncio.sleep(0)
                said[f"check {text[:9]}"] = (await service.answered("check", str(service.folder / "rules.yaml")))[1]
            said |= {" ".join(words): await service.printed(*words) for words in COMMANDS}
            said |= await served(service, given["web"]["listen"], can.text("page"))
            said |= await stored(f"nats://reactor:{can.text('bus')}@127.0.0.1:{port}")
        said["log"] = service.log.read_text()
        said |= mistakes(can, url)
    assert "decisions" in " ".join(said)
    assert all(said.values()), [name for name, text in said.items() if not text]
    found = {name: can.in_(text) for name, text in said.items() if can.in_(text)}
    lines = "\n\n".join(f"{name} {found[name]}: {_line(said[name], can)}" for name in found)
    assert not found, lines


def _line(text: str, can: Canaries) -> list[str]:
    return [line[:600] for line in text.splitlines() if can.in_(line)][:3]


async def post(service: Service, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as http, http.post(f"{service.url}/v1/alerts/am", json=ALERT, headers=headers):
        pass


async def served(service: Service, page: str, token: str) -> dict[str, str]:
    """Answers of each URL: with the token, with none, and with a wrong one."""
    texts = {}
    async with aiohttp.ClientSession() as http:
        for path in ("/metrics", "/readyz", "/livez"):
            async with http.get(f"{service.health_url}{path}") as answer:
                texts[path] = f"{answer.headers} {await answer.text()}"
        for who in (token, "", "a-wrong-token-0123456789"):
            headers = {"Authorization": f"Bearer {who}"} if who else {}
            for path in PAGES:
                async with http.get(f"http://{page}{path}", headers=headers) as answer:
                    texts[f"{path} {who[:6]}"] = f"{answer.headers} {await answer.text()}"
    return texts


async def stored(url: str) -> dict[str, str]:
    """All that the bus keeps."""
    texts = {}
    async with JetStreamBus.connect(url, name="test", patience=timedelta(seconds=5)) as bus:
        for stream in (topology.FACTS, topology.DECISIONS):  # the others are queues
            found = await bus.last_of_each(stream, stream.subjects[0])
            texts[stream.name.lower()] = f"{stream.name} " + " ".join(f"{one.subject} {one.body!r}" for one in found)
        for bucket in topology.BUCKETS:
            entries = await bus.store(bucket).entries(">")
            texts[bucket.name.lower()] = f"{bucket.name} " + " ".join(f"{one.key} {one.value!r}" for one in entries)
    return texts


def mistakes(can: Canaries, url: str) -> dict[str, str]:
    """Output about settings that hold a secret and are wrong."""
    secret = can.text("wrong")
    wrong: list[dict[str, Any]] = [
        {"notifiers": {"chat": {"kind": "slack", "url": secret, "typo": secret}}},
        {"notifiers": {"chat": {"kind": "slack", "url": [secret]}}},
        {"notifiers": {"pager": {"kind": "log", "key": secret}}},
        {"bus": {"user": "a", "password": secret, "passwordFile": "x"}},
        {"bus": {"password": secret}},
        {"bus": {"url": f"http://ann:{secret}@h"}},
        {"bus": {"url": f"nats://ann:{secret}@h:x"}},
        {"prometheus": {"main": {"url": f"ftp://ann:{secret}@h"}}},
        {"prometheus": {"main": {"url": f"http://ann:{secret}@h", "proxyUrl": f"x://{secret}"}}},
        {"alertmanager": {"am": {"url": f"http://ann:{secret}@[h"}}},
        {"loadBalancers": {"edge": {"kind": "Webhook", "url": f"http://ann:{secret}@h", "secret": secret}}},
        {"loadBalancers": {"edge": {"kind": "Webhook", "url": url, "secret": secret, "secretFile": "x"}}},
        {"tracing": {"url": f"ftp://ann:{secret}@h"}},
    ]
    said = {}
    for number, one in enumerate(wrong):
        file = can.folder / "wrong.yaml"
        file.write_text(json.dumps(one))
        try:
            load(file)
            said[f"mistake {number}"] = "no mistake"
        except SettingsError as error:
            said[f"mistake {number}"] = str(error)
    return said
