"""Authorisation of a nats-server: certificates, nkeys, and JWTs as `nsc` writes them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nkeys
import pytest

from tests.contract.bus.servers import Configured

DAYS = "2"
_EVERYTHING = {
    "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1, "wildcards": True,
    "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
}  # fmt: skip
_NO_LIMITS = {"subs": -1, "data": -1, "payload": -1}


def certificates(folder: Path) -> None:
    """A CA (`ca.pem`), a server and a client that it signs, and a stranger that is self-signed."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder.mkdir(parents=True, exist_ok=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "stranger"):
        _openssl(
            "req", "-x509", *key, "-days", DAYS, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out",
            f"{name}.pem", "-addext", "keyUsage=critical,keyCertSign,digitalSignature", folder=folder,
        )  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        _openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr", folder=folder)
        _openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", DAYS,
            "-extfile", "names", "-out", f"{name}.pem", folder=folder,
        )  # fmt: skip


def tls(folder: Path, *, clients: bool = False) -> str:
    """The server's configuration for TLS; `clients`: they have to show a certificate too."""
    return (
        f'tls {{ cert_file: "{folder}/server.pem", key_file: "{folder}/server.key", ca_file: "{folder}/ca.pem", '
        f"verify: {str(clients).lower()} }}"
    )


def jetstream(folder: Path) -> str:
    """The server's configuration for JetStream."""
    return f'jetstream {{ store_dir: "{folder}/store" }}'


@dataclass(frozen=True, slots=True)
class Key:
    """One nkey."""

    seed: str
    public: str

    @classmethod
    def make(cls, kind: int) -> Key:
        seed = nkeys.encode_seed(os.urandom(32), kind)
        return cls(seed.decode(), nkeys.from_seed(bytearray(seed)).public_key.decode())

    def signed(self, subject: Key, name: str, nats: dict[str, Any]) -> str:
        """A JWT about `subject`, signed by this key."""
        claims: dict[str, Any] = {
            "iss": self.public, "sub": subject.public, "name": name, "iat": 1_700_000_000, "nats": nats | {"version": 2}
        }  # fmt: skip
        claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
        head = _part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        text = f"{head}.{_part(json.dumps(claims).encode())}"
        return f"{text}.{_part(nkeys.from_seed(bytearray(self.seed.encode())).sign(text.encode()))}"


def operator_mode(folder: Path) -> tuple[str, Path]:
    """The server's configuration with an operator and one account, and the .creds file of a user of that account."""
    configuration, creds = operator_with_users(folder, {"reactor": None})
    return configuration, creds["reactor"]


def operator_with_users(folder: Path, users: Mapping[str, dict[str, Any] | None]) -> tuple[str, dict[str, Path]]:
    """The same with several users, by their names, and their .creds files.

    Each has a signing key that allows what is given; None: the account's own key, and everything.
    """
    operator = Key.make(nkeys.PREFIX_BYTE_OPERATOR)
    account, system = Key.make(nkeys.PREFIX_BYTE_ACCOUNT), Key.make(nkeys.PREFIX_BYTE_ACCOUNT)
    told = operator.signed(operator, "test", {"type": "operator"})
    scopes, creds = [], {}
    for name, template in users.items():
        user, key = Key.make(nkeys.PREFIX_BYTE_USER), Key.make(nkeys.PREFIX_BYTE_ACCOUNT)
        if template is None:
            ours = account.signed(user, name, {"type": "user", **_NO_LIMITS})
        else:
            scopes.append({"kind": "user_scope", "key": key.public, "role": name, "template": template | _NO_LIMITS})
            ours = key.signed(user, name, {"type": "user", "issuer_account": account.public})
        creds[name] = folder / f"{name}.creds"
        creds[name].write_text(
            f"-----BEGIN NATS USER JWT-----\n{ours}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
    claims = {"type": "account", "limits": _EVERYTHING} | ({"signing_keys": scopes} if scopes else {})
    theirs = operator.signed(account, "reactor", claims)
    servers = operator.signed(system, "system", {"type": "account"})
    accounts = f'resolver_preload: {{ {account.public}: "{theirs}", {system.public}: "{servers}" }}'
    head = f'operator: "{told}"\nsystem_account: {system.public}\nresolver: MEMORY'
    return f"{head}\n{accounts}\n{jetstream(folder)}", creds


class Encrypted(Configured):
    """A server that speaks TLS to its clients."""

    async def start(self) -> None:
        """Its ports file says nats://, as without TLS."""
        await super().start()
        self.url = self.url.replace("nats://", "tls://")

    def configuration(self) -> str:
        """On the same port after a restart."""
        return super().configuration().replace('"127.0.0.1:-1"', f'"127.0.0.1:{self._port}"')


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _openssl(*words: str, folder: Path) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
