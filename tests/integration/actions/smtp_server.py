"""An SMTP server on a loopback port that keeps the mails it is given, and answers as told."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from tests.serving import serving


@dataclass
class Mail:
    """Received mail: the envelope, and the message as it came."""

    sender: str
    to: list[str]
    encrypted: bool
    login: tuple[str, str] | None
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        """The message, read."""
        read = message_from_bytes(self.raw, policy=policy.default)
        assert isinstance(read, EmailMessage)
        return read


@dataclass
class SmtpServer:
    """Speaks as much of RFC 5321, 3207 and 4954 as a client that hands a mail in."""

    tls: ssl.SSLContext | None = None
    """With it STARTTLS is offered."""
    password: str = ""
    """If it is set, a client without AUTH PLAIN is refused."""
    answers: dict[str, list[str]] = field(default_factory=dict)
    """By the beginning of a command, in capitals: what is answered in place of the usual, each once."""
    drips: bool = False
    """True if it greets with lines that never end."""
    port: int = 0
    mails: list[Mail] = field(default_factory=list)
    sessions: int = 0
    ended: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        self.sessions += 1
        try:
            if self.drips:
                while True:
                    writer.write(b"220-wait\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.01)
            await self._session(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # a client may leave whenever it likes
        finally:
            self.ended += 1
            writer.close()

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sender, to, login = "", list[str](), None
        writer.write(self._scripted("CONNECT", "220 here"))
        while line := (await reader.readline()).decode("ascii").strip():
            word = line.upper()
            if word.startswith("EHLO"):
                more = ["STARTTLS"] * bool(self.tls and not _encrypted(writer)) + ["AUTH PLAIN"] * bool(self.password)
                names = ["here", "8BITMIME", *more]
                said = "\r\n".join(f"250{'-' if name is not names[-1] else ' '}{name}" for name in names)
            elif word == "STARTTLS":
                writer.write(b"220 go on\r\n")
                await writer.start_tls(self.tls)  # type: ignore[arg-type]
                continue
            elif word.startswith("AUTH PLAIN"):
                _, user, given = base64.b64decode(line.split()[2]).decode().split("\0")
                login, said = (user, given), "235 hello" if given == self.password else "535 who are you"
            elif word.startswith("MAIL FROM:"):
                sender, to = _path(line), []
                said = self._scripted_text(word, "250 ok" if login or not self.password else "530 log in")
            elif word.startswith("RCPT TO:"):
                said = self._scripted_text(word, "250 ok")
                to += [_path(line)] if said.startswith("250") else []
            elif word == "DATA":
                writer.write(b"354 go on\r\n")
                raw = (await reader.readuntil(b"\r\n.\r\n"))[:-3]
                said = self._scripted_text(word, "250 taken")
                if said.startswith("250"):
                    whole = raw.replace(b"\r\n..", b"\r\n.")
                    self.mails.append(Mail(sender, to, _encrypted(writer), login, whole))
            else:
                said = "221 bye" if word == "QUIT" else "250 ok"
            writer.write(f"{said}\r\n".encode())
            await writer.drain()
            if word == "QUIT":
                return

    def _scripted(self, word: str, usual: str) -> bytes:
        return f"{self._scripted_text(word, usual)}\r\n".encode()

    def _scripted_text(self, word: str, usual: str) -> str:
        for begins, left in self.answers.items():
            if word.startswith(begins) and left:
                return left.pop(0)
        return usual


def _path(line: str) -> str:
    return line[line.index("<") + 1 : line.index(">")]


def _encrypted(writer: asyncio.StreamWriter) -> bool:
    return writer.get_extra_info("sslcontext") is not None


@asynccontextmanager
async def smtp(
    *, tls: ssl.SSLContext | None = None, implicit: bool = False, password: str = "", drips: bool = False
) -> AsyncIterator[SmtpServer]:
    """Serve while the block runs; `implicit`: TLS from the first byte, else by STARTTLS where there is `tls`."""
    made = SmtpServer(tls=None if implicit else tls, password=password, drips=drips)
    async with serving(made.serve, ssl=tls if implicit else None) as made.port:
        yield made
