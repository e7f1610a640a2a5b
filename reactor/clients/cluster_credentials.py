"""The credentials and settings of one cluster: from its kubeconfig, or from the pod that this process runs in."""

from __future__ import annotations

from copy import copy
from typing import Any

import yaml

from reactor.clients.official_client import ApiClient, ConfigException, Configuration, kube_config
from reactor.clients.sessions import Purpose, Sessions
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import ClusterSettings

_ODD_FILE = (
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    RecursionError,
)  # what the client raises at YAML that is no kubeconfig


async def configured_sessions(name: str, settings: ClusterSettings) -> Sessions:
    """Read the credentials, and give sessions with them. Raises SettingsError with what to do."""
    configuration = Configuration()
    try:
        if settings.kubeconfig is None and settings.context is None:
            kube_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the library has none
        else:
            path = str(settings.kubeconfig.expanduser()) if settings.kubeconfig else None
            await kube_config.load_kube_config(  # type: ignore[no-untyped-call]  # the library has no types there
                config_file=path, context=settings.context, client_configuration=configuration, persist_config=False
            )
        # As kubectl does: `kubectl create token … > token` ends with a line break, which no header may hold.
        configuration.api_key = {name: token.strip() for name, token in configuration.api_key.items()}
        # What the environment names as a proxy counts for none of our clients. To look it up, and a password in .netrc,
        # takes each request through two threads: more than half of its processor time.
        configuration.client_session_kwargs = {"trust_env": False}
        # Made here, because it reads the CA and the client certificate: a missing file is a setting to mend.
        return Sessions({purpose: _client(configuration, purpose) for purpose in Purpose})
    except (ConfigException, OSError, yaml.YAMLError, *_ODD_FILE) as error:
        where = f"kubeconfig {settings.kubeconfig}" if settings.kubeconfig else "the in-cluster service account"
        raise SettingsError(
            f"clusters.{name}: cannot use {where}: {' '.join(str(error).split())}. Set clusters.{name}.kubeconfig and, "
            f"where the file has several, clusters.{name}.context"
        ) from error


def _client(configuration: Any, purpose: Purpose) -> Any:
    if purpose is Purpose.WATCH:
        configuration = copy(configuration)  # only this: what renews its token is shared
        configuration.connection_pool_maxsize = 0  # aiohttp: no limit
    return ApiClient(configuration)
