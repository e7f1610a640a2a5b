"""Authentication of posts: bearer tokens, a user and password, client certificates.

Tokens lie in files, as a mounted Secret has them, and are read again when the file changes: several at once, so that a
token can be replaced without a gap. Only SHA-256 digests are kept and compared, in constant time and all of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import ssl
from functools import partial
from pathlib import Path

from reactor.runtime.certificates import Certificates, serving
from reactor.runtime.errors import SettingsError
from reactor.settings.receiver_settings import Receiver
from reactor.settings.web_settings import Web

log = logging.getLogger(__name__)


class SecretFile:
    """The digest of what a file holds, as of its last change."""

    def __init__(self, path: Path, *, prefix: str = "") -> None:
        """`prefix` is before the secret: `user:` for a password. Raises SettingsError where there is none."""
        self._path = path
        self._prefix = prefix
        self._failing = False
        try:
            self._stamp = self._look()
            self._digest = self._read()
        except (OSError, ValueError) as error:
            raise SettingsError(f"{path}: cannot be read as a secret: {error}") from error

    def digest(self) -> bytes:
        """Give the digest. A file that is away or empty for a moment locks no client out: the last secret counts."""
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._digest = self._read()
                self._stamp = stamp
        except (OSError, ValueError) as error:
            if not self._failing:
                log.error("a secret cannot be read again, the last one counts", extra={"reason": str(error)})  # noqa: TRY400 - a stack says nothing more
            self._failing = True
        else:
            self._failing = False
        return self._digest

    def _look(self) -> tuple[int, int, int]:
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_ino, stat.st_size

    def _read(self) -> bytes:
        secret = self._path.read_text().strip()
        if not secret:
            raise ValueError(f"{self._path} is empty")
        return _sha256((self._prefix + secret).encode())


class Guard:
    """Decides who may post."""

    def __init__(self, settings: Receiver) -> None:
        """Raises SettingsError where a file is missing."""
        self._tokens = [SecretFile(path) for path in settings.bearer_token_files]
        self._passwords = []
        if settings.basic_user and settings.basic_password_file:
            self._passwords = [SecretFile(settings.basic_password_file, prefix=f"{settings.basic_user}:")]
        self._certificate = settings.client_ca_file is not None

    @property
    def challenge(self) -> str:
        """Value of WWW-Authenticate."""
        ways = [("Bearer", self._tokens), ("Basic", self._passwords)]
        return ", ".join(f'{scheme} realm="alert-reactor"' for scheme, files in ways if files) or "Certificate"

    def admits(self, authorization: str | None, *, certificate: bool) -> bool:
        """True if this header, over a connection with or without a client certificate, gives access.

        With a client CA a certificate is needed; with tokens or a password, one of those is needed too.
        """
        if self._certificate and not certificate:
            return False
        if not self._tokens and not self._passwords:
            return True
        scheme, _, credentials = (authorization or "").strip().partition(" ")
        if scheme.lower() == "bearer":
            return _any_equal(_sha256(credentials.strip().encode("utf-8", "surrogateescape")), self._tokens)
        if scheme.lower() == "basic":
            return _any_equal(_sha256(_decoded(credentials)), self._passwords)
        return False


def tls(settings: Receiver | Web) -> ssl.SSLContext | None:
    """Give the server's TLS context; None: plain HTTP. Raises SettingsError where a file cannot be used.

    Each handshake is by the files as they are then.
    A client certificate is asked for but not demanded here: probes of /livez and /readyz have none. Posts demand it.
    """
    if settings.tls_cert_file is None:
        return None
    files = (
        settings.tls_cert_file,
        settings.tls_key_file,
        settings.client_ca_file if isinstance(settings, Receiver) else None,
    )
    try:
        return serving(Certificates(partial(_context, *files), files))
    except OSError as error:  # ssl.SSLError is one
        raise SettingsError(f"tlsCertFile, tlsKeyFile, clientCaFile: {error}") from error


def _context(certificate: Path, key: Path | None, client_ca: Path | None) -> ssl.SSLContext:
    """Raises OSError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _any_equal(given: bytes, files: list[SecretFile]) -> bool:
    # All are compared, whichever fits: the time taken tells nothing.
    return sum(hmac.compare_digest(given, file.digest()) for file in files) > 0


def _decoded(credentials: str) -> bytes:
    try:
        return base64.b64decode(credentials.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _sha256(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
