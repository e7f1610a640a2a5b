"""The settings: one YAML file, environment variables (`REACTOR_BUS__URL`), and secrets from files.

What a rule file names (clusters, Prometheus endpoints, notifiers) is described here, so that rule files hold no
addresses and no secrets. The parts have modules of their own: `bus_settings`, `receiver_settings`, `server_settings`
(what is called by name), `notifier_settings`, `web`. Here are the file as a whole, and how it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pydantic_settings
from pydantic import AwareDatetime, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from reactor.runtime.errors import SettingsError
from reactor.settings.balancer_settings import LoadBalancerSettings
from reactor.settings.bus_settings import BusSettings
from reactor.settings.custom_routes import CustomRouteKind
from reactor.settings.listeners import PORT_MAX, parted
from reactor.settings.notifier_settings import Notifier
from reactor.settings.part import SettingsPart
from reactor.settings.receiver_settings import HealthSettings, Receiver
from reactor.settings.server_settings import AwsAccess, ClusterSettings, Endpoint, Karmada
from reactor.settings.sources import Environment, by_alias, in_words, read_file, unreadable
from reactor.settings.tracing_settings import Tracing
from reactor.settings.web_settings import Web
from rules.rulefile.described import Described
from rules.rulefile.fields import KubeName
from rules.rulefile.route_kinds import CUSTOM, ROUTE_KINDS, RouteFormat


class AuditSettings(SettingsPart):
    """Signature of the audit."""

    key_file: Path | None = None
    """A secret of 32 bytes or more with which each record's place is signed, the same for all processes. Default: not
    signed."""
    signed_since: AwareDatetime | None = None
    """Time from which all processes had the key: a record without a signature that was stored later is forged. Default:
    records without a signature before the first signed one are counted, and no more."""

    @model_validator(mode="after")
    def _has_key(self) -> AuditSettings:
        if self.signed_since is not None and self.key_file is None:
            msg = "signedSince goes together with keyFile"
            raise ValueError(msg)
        return self


class Settings(Described, BaseSettings):
    """All settings of a process: the file and the environment."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="REACTOR_", env_nested_delimiter="__", alias_generator=to_camel,
        validate_by_name=True, validate_by_alias=True, defer_build=True,
    )  # fmt: skip

    bus: BusSettings = BusSettings()
    """The NATS server."""
    receiver: Receiver = Receiver()
    """Listener for webhooks."""
    health: HealthSettings = HealthSettings()
    """Listener for /livez, /readyz and /metrics."""
    web: Web = Web()
    """The page and its API."""
    audit: AuditSettings = AuditSettings()
    """Signature of the audit."""
    tracing: Tracing | None = None
    """Receiver of OpenTelemetry traces; null: none."""
    prometheus: dict[str, Endpoint] = {}
    """Each Prometheus, by the name that rule files use."""
    alertmanager: dict[str, Endpoint] = {}
    """Each Alertmanager, to ask it which alerts fire: all of a cluster, each with its own address."""
    clusters: dict[str, ClusterSettings] = {}
    """Each Kubernetes cluster, by the name that rule files use."""
    load_balancers: dict[KubeName, LoadBalancerSettings] = {}
    """Load balancers outside of clusters: `route: {kind: HAProxy, name: edge}` is the entry `edge`."""
    route_kinds: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$", max_length=63)], CustomRouteKind] = {}
    """Kinds of routes that are not built in, by the name that rules give as `customKind`."""
    karmada: Karmada = Karmada()
    """The Karmada control plane."""
    aws: AwsAccess = AwsAccess()
    """The way to Amazon's APIs."""
    create_namespaces: bool = False
    """True: a workload may bring its namespace along to a cluster that lacks it."""
    notifiers: dict[str, Notifier] = {}
    """Notifiers of people, by the name that rules give under `notify`."""
    rule_files: tuple[str, ...] = ()
    """Paths, folders or globs. A folder and a glob mean no rule tests (`*_test.yaml`)."""
    health_scripts: tuple[Literal["lua", "cel"], ...] = ()
    """Languages in which WorkloadWatch may run `health` scripts of rule files; each needs its extra. Default: none."""
    name: str | None = None
    """Name of this process among its peers. Default: host name and process id."""
    log_format: Literal["logfmt", "json"] = "logfmt"
    """The form of log lines on stderr."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 36
    """Most actions that one executor carries out at the same time."""

    @field_validator("route_kinds")
    @classmethod
    def _not_built_in(cls, kinds: dict[str, CustomRouteKind]) -> dict[str, CustomRouteKind]:
        if built_in := sorted(set(kinds) & {*ROUTE_KINDS, CUSTOM}):
            msg = f"{built_in[0]} is built in: remove it, or give yours another name"
            raise ValueError(msg)
        return kinds

    @property
    def described_route_kinds(self) -> dict[str, RouteFormat]:
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
    """Content of the settings file."""
    file: ClassVar[Path | None] = None
    """Path of the settings file."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic gives it
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
