"""Taking the secrets of the settings out of any text, whatever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from reactor.runtime.redaction import redact

LENGTH_MIN = 6
"""Characters. A shorter text is part of too many words."""
LINE_MIN = 16
"""Characters of a line of a key, a kubeconfig or a .creds file: shorter ones are keywords."""
BYTES_MAX = 1 << 20
PUBLIC = ("ca_file", "client_ca_file", "cert_file", "tls_cert_file", "server_binary", "store")
"""Settings that name files without a secret."""
HIDDEN = "***"


class Redactor:
    """Replaces each secret of the settings, and all that looks like one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({one for one in secrets if len(one) >= LENGTH_MIN}, key=len, reverse=True)

    @classmethod
    def of(cls, settings: BaseModel, *others: str) -> Redactor:
        """Of what the settings hold and the files that they name. `others`: further secrets."""
        return cls([*_secrets(settings, ""), *others])

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return redact(text)


def _secrets(value: object, name: str) -> Iterator[str]:
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for field in type(value).model_fields:
                yield from _secrets(getattr(value, field), field)
        case Mapping():
            for one in value.values():
                yield from _secrets(one, name)
        case list() | tuple():
            for one in value:
                yield from _secrets(one, name)
        case Path() if name not in PUBLIC:
            yield from _in_file(value)
        case _:
            yield from _in_url(str(value))


def _in_url(text: str) -> Iterator[str]:
    try:
        password = urlsplit(text).password
    except ValueError:  # no URL
        return
    if password:
        yield from {password, unquote(password)}


def _in_file(path: Path) -> Iterator[str]:
    """The file's text where it is one word, else its long lines. A file that cannot be read gives nothing away."""
    try:
        text = path.read_bytes()[:BYTES_MAX].decode(errors="replace").strip()
    except OSError:
        return
    lines = text.splitlines()
    if len(lines) == 1:
        yield text
    for line in lines:
        _, _, value = line.rpartition(": ")
        yield from (one for one in (line.strip(), value.strip().strip("'\"")) if len(one) >= LINE_MIN)
