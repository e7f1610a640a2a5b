"""Signs the place of each record of the audit: HMAC-SHA256 with a key that is in no message and on no bus.

What is signed is the record's chain, its number, and the hash and time of the record before. So each record confirms
the one before it, and the first that retention has left confirms where the chain begins.
"""

from __future__ import annotations

import hmac
from pathlib import Path

from bus.messages import ChainLink, iso
from reactor.runtime.errors import SettingsError

KEY_BYTES_MIN = 32
"""Least length of a key: that of the digest (RFC 2104, section 3)."""


class Signer:
    """Signs and verifies with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, file: Path | None) -> Signer | None:
        """The one with the key in this file, without white space around it; None: nothing is signed.

        Raises SettingsError.
        """
        if file is None:
            return None
        try:
            key = file.read_bytes().strip()
        except OSError as error:
            raise SettingsError(f"audit.keyFile: {file}: {error.strerror or error}") from error
        if len(key) < KEY_BYTES_MIN:
            raise SettingsError(
                f"audit.keyFile: {file} has {len(key)} bytes, and needs {KEY_BYTES_MIN}: openssl rand -hex 32 makes one"
            )
        return cls(key)

    def signed(self, chain: str, link: ChainLink) -> ChainLink:
        """Give the link of a record in this chain with its signature."""
        return link.model_copy(update={"signature": self._sign(chain, link)})

    def verifies(self, chain: str, link: ChainLink) -> bool:
        """True if it was signed with this key, for this place in this chain."""
        return hmac.compare_digest(self._sign(chain, link).encode(), link.signature.encode())

    def _sign(self, chain: str, link: ChainLink) -> str:
        before = f"{link.previous} {iso(link.previous_at) if link.previous_at is not None else ''}"
        return hmac.new(self._key, f"{chain} {link.number} {before}".encode(), "sha256").hexdigest()
