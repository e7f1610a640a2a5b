"""The settings: one YAML file, environment variables (`REACTOR_BUS__URL`), and secrets from files.

What a rule file names (clusters, Prometheus endpoints, notifiers) is described here, so that rule files hold no
addresses and no secrets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pydantic_settings
from pydantic import AwareDatetime, Field, HttpUrl, SecretStr, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from reactor.runtime.errors import SettingsError
from reactor.settings.balancers import LoadBalancer
from reactor.settings.custom_routes import CustomRouteKind
from reactor.settings.email import Email
from reactor.settings.listeners import PORT_MAX, Listener, is_loopback, parted
from reactor.settings.part import SettingsPart
from reactor.settings.sources import Environment, by_alias, in_words, is_nats, read_file, unreadable
from reactor.settings.tracing_settings import Tracing
from reactor.settings.web import Web
from rules.rulefile.described import Described
from rules.rulefile.fields import KubeName
from rules.rulefile.route_kinds import CUSTOM, ROUTE_KINDS, RouteKind


class BusSettings(SettingsPart):
    """The NATS server. Embedded by default: a child process on a free loopback port."""

    url: str | list[str] | None = None
    """`nats://…`, or several; unset: an embedded nats-server."""
    store: Path = Path(".reactor/nats")
    """Embedded only: the folder of its files."""
    server_binary: Path | None = None
    """Embedded only: the nats-server to start. Default: that of the extra `embedded`, else the one on PATH."""
    credentials: Path | None = None
    """A .creds file: JWT and seed, as `nsc` writes them."""
    nkey_seed_file: Path | None = None
    """A file with an nkey's seed."""
    user: str | None = None
    """The user of the NATS server, with password or passwordFile."""
    password: SecretStr | None = None
    """Better in a file: passwordFile."""
    password_file: Path | None = None
    """A file with the password of `user`."""
    inbox_prefix: Annotated[str, Field(pattern=r"^_INBOX[A-Za-z0-9_-]*$", max_length=64)] | None = None
    """Of our inboxes, for the server's permissions. Default: `_INBOX_` and the user; `_INBOX` without one."""
    ca_file: Path | None = None
    """The CA of the server's certificate. Default with `tls://` or `certFile`: the system's."""
    cert_file: Path | None = None
    """Our own certificate, where the server asks for one."""
    key_file: Path | None = None
    """The key of certFile."""
    replicas: Annotated[int, Field(ge=1, le=5)] = 1
    """Copies of each stream: 3 in a cluster."""
    partitions: Annotated[int, Field(ge=1, le=1024)] = 64
    """Fixed for good when the streams are first created."""
    max_targets_per_publisher: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    """Of a publisher on the bus that no rule file names as a source. Observations of more are refused and counted. A
    target takes some 15 kB of memory."""
    observations_at_once: Annotated[int, Field(ge=10, le=10_000_000)] = 10_000
    """Of each publisher on the bus, and a twentieth of what comes, while more waits in the inbox than a router takes at
    once. The rest is decided later: what others say does not wait for it, and no window does."""

    @field_validator("url")
    @classmethod
    def _nats(cls, url: str | list[str] | None) -> str | list[str] | None:
        if url == []:
            msg = "the list is empty: leave url out for an embedded server"
            raise ValueError(msg)
        for one in [url] if isinstance(url, str) else url or []:
            if not is_nats(one):
                msg = "write nats://HOST:PORT, or a list of them"  # without the value: it may have a password
                raise ValueError(msg)
        return url

    @field_validator("store", "server_binary")
    @classmethod
    def _path(cls, path: Path | None) -> Path | None:
        if path is not None and "\0" in str(path):
            msg = "a path has no NUL character"
            raise ValueError(msg)
        return path

    @model_validator(mode="after")
    def _one_identity(self) -> BusSettings:
        given = {"credentials": self.credentials, "nkeySeedFile": self.nkey_seed_file, "user": self.user}
        if len(named := [name for name, value in given.items() if value]) > 1:
            msg = f"{' and '.join(named)} are given: one of them says who we are"
            raise ValueError(msg)
        if self.password and self.password_file:
            msg = "password and passwordFile are given: keep the file"
            raise ValueError(msg)
        if bool(self.user) != bool(self.password or self.password_file):
            msg = "user goes together with password or passwordFile"
            raise ValueError(msg)
        if bool(self.cert_file) != bool(self.key_file):
            msg = "certFile and keyFile go together"
            raise ValueError(msg)
        return self


class HealthSettings(Listener):
    """The HTTP server for /livez, /readyz and /metrics alone: trouble at the receiver does not reach it."""

    listen: str | None = None
    """host:port. Default: the receiver's host, and the port after the receiver's; a free one where that is 0."""
    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 100
    """As for the receiver."""
    max_connections_per_peer: Annotated[int, Field(ge=1, le=100_000)] = 50
    """The same for those of one address."""

    @field_validator("listen")
    @classmethod
    def _address(cls, listen: str | None) -> str | None:
        if listen is not None:
            parted(listen)
        return listen


class Receiver(Listener):
    """The HTTP server for webhooks. It answers for health and metrics too."""

    listen: str = "127.0.0.1:8484"
    """host:port; port 0 takes a free one."""
    bearer_token_files: tuple[Path, ...] = ()
    """Any of these tokens is accepted: two at once allow rotation. Read again when they change."""
    basic_user: str | None = None
    """Basic authentication: the user, with basicPasswordFile."""
    basic_password_file: Path | None = None
    """A file with the password of basicUser."""
    tls_cert_file: Path | None = None
    """With it and tlsKeyFile the listener speaks TLS. Read again when it changes."""
    tls_key_file: Path | None = None
    """The key of tlsCertFile."""
    client_ca_file: Path | None = None
    """With it, only clients with a certificate of this CA may post."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=256 << 20)] = 32 << 20
    """5,000 alerts in one group are 3 MB, 20,000 are 12 MB (measured)."""
    max_alerts_per_post: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    """A post with more alerts is answered 413."""
    body_seconds: Annotated[float, Field(gt=0, le=300)] = 10
    """So long a body may take to come in. Alertmanager waits for `group_interval`, at least 10 s."""
    posts_at_once: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Taken at once; further ones are answered 503, and come again."""
    posts_of_a_source: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Of these, so that one source leaves room for others."""
    alerts_per_second: Annotated[int, Field(ge=100, le=1_000_000)] = 2_000
    """Of each source, beyond alertsAtOnce: a post with more is answered when all of it is stored."""
    alerts_at_once: Annotated[int, Field(ge=1, le=1_000_000)] = 5_000
    """Of each source, stored at once after a silence: one large group of Alertmanager's."""

    @property
    def host(self) -> str:
        """The host part of `listen`."""
        return parted(self.listen)[0]

    @property
    def port(self) -> int:
        """The port part of `listen`."""
        return parted(self.listen)[1]

    @property
    def authenticated(self) -> bool:
        """Whether a client has to show who it is."""
        return bool(self.bearer_token_files or self.basic_user or self.client_ca_file)

    @model_validator(mode="after")
    def _closed_to_strangers(self) -> Receiver:
        parted(self.listen)
        if bool(self.basic_user) != bool(self.basic_password_file):
            msg = "basicUser and basicPasswordFile go together"
            raise ValueError(msg)
        if bool(self.tls_cert_file) != bool(self.tls_key_file) or (self.client_ca_file and not self.tls_cert_file):
            msg = "tlsCertFile and tlsKeyFile go together, and clientCaFile needs both"
            raise ValueError(msg)
        if not self.authenticated and not is_loopback(self.host):
            msg = (
                f"listen: {self.listen} is open to other machines: set bearerTokenFiles, basicUser or clientCaFile, "
                "or listen on 127.0.0.1"
            )
            raise ValueError(msg)
        return self


class Endpoint(SettingsPart):
    """A Prometheus or an Alertmanager."""

    url: HttpUrl
    """Its address, without `/api/…`."""
    bearer_token_file: Path | None = None
    """A file with the token of each request."""
    basic_user: str | None = None
    """Basic authentication: the user, with basicPasswordFile."""
    basic_password_file: Path | None = None
    """A file with the password of basicUser."""
    ca_file: Path | None = None
    """The CA of its certificate. Default: the system's."""
    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there. HTTP_PROXY and its like in the environment count for none of our clients."""
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] = 10
    """For each request, the wait for a free place of queriesAtOnce included."""
    max_series: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """A result with more series, or a list of more alerts, is an error, not a flood."""
    max_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] | None = None
    """So is an answer with more bytes, unpacked. Default: for each of maxSeries 1,024 of a Prometheus, 4,096 of an
    Alertmanager."""
    queries_at_once: Annotated[int, Field(ge=1, le=256)] = 8
    """Prometheus only: how many queries it is asked at once. Its own limit, --query.max-concurrency, is 20 by default,
    for all who ask."""


class ClusterSettings(SettingsPart):
    """A Kubernetes cluster. With neither key: the cluster that the process runs in."""

    kubeconfig: Path | None = None
    """A kubeconfig file. Default: the service account of the Pod."""
    context: str | None = None
    """A context of it. Default: its current one."""
    labels: dict[str, str] = Field(default_factory=dict)
    """What placement may select it by; so are the next three."""
    region: str = ""
    """For spreadByField and fieldSelector."""
    zone: str = ""
    """For spreadByField and fieldSelector."""
    provider: str = ""
    """For spreadByField and fieldSelector."""


class Karmada(SettingsPart):
    """The Karmada control plane that rules with `carrier: Karmada` act on."""

    cluster: str = "karmada"
    """Whose API holds bindings, policies and Cluster objects: a name among `clusters`."""
    host: str = ""
    """Where Karmada's own components run, to see which of its switches are on; empty: on the same API."""


class AwsAccess(SettingsPart):
    """The way to Amazon's APIs: network ACLs, Route 53, target groups. Credentials are boto3's business."""

    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there."""


class Notifier(SettingsPart):
    """Where people are told."""

    kind: Literal["webhook", "slack", "pagerduty", "opsgenie", "alertmanager", "email", "log"] = "log"
    """How. log: a line in the log of the reactor, and no more."""
    url: SecretStr | None = None
    """webhook, slack: all of it. alertmanager: without /api/v2/alerts. pagerduty, opsgenie: where it is another than
    the usual one, as in Europe."""
    url_file: Path | None = None
    """A file with the url. Read again for each message."""
    proxy_url: HttpUrl | None = None
    """An HTTP proxy on the way there."""
    key: SecretStr | None = None
    """pagerduty: the integration's routing key (Events API v2). opsgenie: the API integration's key."""
    key_file: Path | None = None
    """A file with the key. Read again for each message."""
    email: Email | None = None
    """email: the server that takes it, and the addresses."""

    @model_validator(mode="after")
    def _has_address(self) -> Notifier:
        if (self.kind == "email") != (self.email is not None):
            msg = "kind email goes together with email: {host, from, to}"
            raise ValueError(msg)
        if self.email is not None and (self.url or self.url_file or self.proxy_url):
            msg = "kind email takes no url and no proxyUrl: its server is email.host"
            raise ValueError(msg)
        keyed = self.kind in ("pagerduty", "opsgenie")
        if self.kind not in ("log", "email") and not keyed and not (self.url or self.url_file):
            msg = f"kind {self.kind} needs url or urlFile"
            raise ValueError(msg)
        if keyed and not (self.key or self.key_file):
            msg = f"kind {self.kind} needs key or keyFile"
            raise ValueError(msg)
        if not keyed and (self.key or self.key_file):
            msg = f"kind {self.kind} takes no key"
            raise ValueError(msg)
        return self


class AuditSettings(SettingsPart):
    """How the audit is kept."""

    key_file: Path | None = None
    """A secret of 32 bytes or more with which each record's place is signed, the same for all processes. Default: not
    signed."""
    signed_since: AwareDatetime | None = None
    """When all processes had the key: a record without a signature that was stored later is forged. Default: records
    without a signature before the first signed one are counted, and no more."""

    @model_validator(mode="after")
    def _has_key(self) -> AuditSettings:
        if self.signed_since is not None and self.key_file is None:
            msg = "signedSince goes together with keyFile"
            raise ValueError(msg)
        return self


class Settings(Described, BaseSettings):
    """All of it."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="REACTOR_", env_nested_delimiter="__", alias_generator=to_camel,
        validate_by_name=True, validate_by_alias=True, defer_build=True,
    )  # fmt: skip

    bus: BusSettings = BusSettings()
    """The NATS server."""
    receiver: Receiver = Receiver()
    """Where webhooks are taken."""
    health: HealthSettings = HealthSettings()
    """Where /livez, /readyz and /metrics are answered."""
    web: Web = Web()
    """The page and its API."""
    audit: AuditSettings = AuditSettings()
    """How the audit is signed."""
    tracing: Tracing | None = None
    """Where OpenTelemetry traces go; null: nowhere."""
    prometheus: dict[str, Endpoint] = {}
    """Each Prometheus, by the name that rule files use."""
    alertmanager: dict[str, Endpoint] = {}
    """Each Alertmanager, to ask it which alerts fire: all of a cluster, each with its own address."""
    clusters: dict[str, ClusterSettings] = {}
    """Each Kubernetes cluster, by the name that rule files use."""
    load_balancers: dict[KubeName, LoadBalancer] = {}
    """What rules move outside of clusters: `route: {kind: HAProxy, name: edge}` is the entry `edge`."""
    route_kinds: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$", max_length=63)], CustomRouteKind] = {}
    """Kinds of routes that are not built in, by the name that rules give as `customKind`."""
    karmada: Karmada = Karmada()
    """The Karmada control plane."""
    aws: AwsAccess = AwsAccess()
    """The way to Amazon's APIs."""
    create_namespaces: bool = False
    """Whether a workload may bring its namespace along to a cluster that lacks it."""
    notifiers: dict[str, Notifier] = {}
    """Where people are told, by the name that rules give under `notify`."""
    rule_files: tuple[str, ...] = ()
    """Paths, folders or globs. A folder and a glob mean no rule tests (`*_test.yaml`)."""
    health_scripts: tuple[Literal["lua", "cel"], ...] = ()
    """Languages in which WorkloadWatch may run `health` scripts of rule files; each needs its extra. Default: none."""
    name: str | None = None
    """This process's name among its peers. Default: host name and process id."""
    log_format: Literal["logfmt", "json"] = "logfmt"
    """The form of log lines on stderr."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 36
    """How many actions one executor carries out at once."""

    @field_validator("route_kinds")
    @classmethod
    def _not_built_in(cls, kinds: dict[str, CustomRouteKind]) -> dict[str, CustomRouteKind]:
        if built_in := sorted(set(kinds) & {*ROUTE_KINDS, CUSTOM}):
            msg = f"{built_in[0]} is built in: remove it, or give yours another name"
            raise ValueError(msg)
        return kinds

    @property
    def described_route_kinds(self) -> dict[str, RouteKind]:
        """The route kinds of the settings, as built-in ones are described."""
        return {name: kind.described() for name, kind in self.route_kinds.items()}

    @property
    def health_address(self) -> tuple[str, int]:
        """Host and port of the listener for health."""
        if self.health.listen is not None:
            return parted(self.health.listen)
        host, port = parted(self.receiver.listen)
        return host, port + 1 if 0 < port < PORT_MAX else 0

    from_file: ClassVar[dict[str, Any]] = {}
    """What the settings file says."""
    file: ClassVar[Path | None] = None
    """That file."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic gives it - pydantic-settings' own signature
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic gives it
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic gives it
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments beat the environment, the environment beats the file."""
        return init_settings, Environment(settings_cls), InitSettingsSource(settings_cls, by_alias(cls, cls.from_file))


def load(path: Path | None, **given: Any) -> Settings:
    """Read the settings. Raises SettingsError that names every key that is wrong, and where it is."""

    class FromFile(Settings):
        from_file = read_file(path) if path is not None else {}
        file = path

    try:
        return FromFile(**by_alias(Settings, given))
    except ValidationError as error:
        raise SettingsError(in_words(error, path)) from error
    except pydantic_settings.SettingsError as error:
        raise unreadable(error) from error
