"""Credentials for a Prometheus or an Alertmanager, and the certificates by which we know them."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from reactor.runtime.certificates import Certificates
from reactor.runtime.errors import SettingsError
from reactor.settings.balancer_settings import WebhookSettings
from reactor.settings.notifier_settings import Notifier
from reactor.settings.server_settings import AwsAccess, Endpoint


def authorization(name: str, endpoint: Endpoint) -> str | None:
    """Give the Authorization header, or None where none is set.

    Files are read at every call, so that a rotated token is used at once. Raises SettingsError where one is missing.
    """
    if endpoint.bearer_token_file:
        return f"Bearer {_secret(name, endpoint.bearer_token_file)}"
    if endpoint.basic_user:
        password = _secret(name, endpoint.basic_password_file) if endpoint.basic_password_file else ""
        return "Basic " + b64encode(f"{endpoint.basic_user}:{password}".encode()).decode()
    return None


def proxy_of(endpoint: Endpoint | Notifier | WebhookSettings | AwsAccess) -> str | None:
    """Give the proxy on the way there; None: there is none, whatever the environment says."""
    return str(endpoint.proxy_url) if endpoint.proxy_url else None


Trust = Callable[[], ssl.SSLContext | bool]
"""Asked before each request: a CA file is read again when it changes."""


def trust(name: str, endpoint: Endpoint | WebhookSettings) -> Trust:
    """Give whose certificates are taken: the endpoint's own CA, or True for the system's. Raises SettingsError."""
    if endpoint.ca_file is None:
        return lambda: True
    file = endpoint.ca_file.expanduser()
    try:
        return Certificates(lambda: ssl.create_default_context(cafile=str(file)), [file]).context
    except OSError as error:  # also ssl.SSLError
        raise SettingsError(f"{name}.caFile: cannot use {endpoint.ca_file}: {error}") from error


def _secret(name: str, path: Path) -> str:
    try:
        return path.expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}: cannot read the secret file {path}: {error}") from error
