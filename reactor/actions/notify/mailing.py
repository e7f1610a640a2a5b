"""Sends a mail: one SMTP session in a thread, cut off when its time is over.

What goes wrong: 4yz and a silent or broken connection may pass (NotifierUnavailable), 5yz and TLS do not (Declined).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import smtplib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from functools import partial
from typing import Any

import stamina

from reactor.actions.notify.posting import ATTEMPTS_MAX, SEND_SECONDS, NotifierUnavailable, read_secret
from reactor.actions.outcomes import Declined
from reactor.runtime.clock import Clock
from reactor.runtime.threads import Threads
from reactor.runtime.visible import visible
from reactor.settings.email import Email, address_of

TIMEOUT_SECONDS = 5.0
"""Seconds for one answer of the server, and for an attempt as a whole."""
WORDS_MAX = 200
"""Characters of a server's own words that an error repeats."""
_MAILS = Threads("mails", 4)
_HELLO = "localhost"  # the full name of this machine would be asked of DNS, for as long as that takes
RefusedRecipients = Mapping[str, tuple[int, bytes]]
"""Code and words of the server, by recipient."""


async def send(name: str, mail: EmailMessage, to: Email, clock: Clock) -> None:
    """Hand it in. Who has got it is left out of further attempts. Raises Declined, NotifierUnavailable."""
    password = await read_secret(to.password_file, f"notifiers.{name}.email.passwordFile") if to.password_file else ""
    left = [address_of(one) for one in to.to]
    async for attempt in stamina.retry_context(
        on=NotifierUnavailable, attempts=ATTEMPTS_MAX, timeout=SEND_SECONDS,
        wait_initial=0.2, wait_max=1.0, wait_jitter=0.2,
    ):  # fmt: skip
        with attempt:
            try:
                refused = await _hand_in(mail, left, to, password, clock)
            except smtplib.SMTPRecipientsRefused as error:
                refused = error.recipients
            except (smtplib.SMTPException, OSError) as error:  # also ssl.SSLError and TimeoutError
                raise _error(name, error) from None
            left = list(refused)
            if refused:
                raise _of_recipients(name, refused)


async def _hand_in(
    mail: EmailMessage, left: Sequence[str], to: Email, password: str, clock: Clock
) -> RefusedRecipients:
    session = partial(_session, mail, left, to, password, partial(_seconds_left, clock, clock.monotonic()))
    async with asyncio.timeout(TIMEOUT_SECONDS):  # asking DNS and trying several addresses may take longer
        return await _MAILS.run(session)


def _seconds_left(clock: Clock, begun: float) -> float:
    return begun + TIMEOUT_SECONDS - clock.monotonic()


def _session(
    mail: EmailMessage, left: Sequence[str], to: Email, password: str, seconds_left: Callable[[], float]
) -> RefusedRecipients:
    """Connect, log in, hand in. Gives who was refused. Raises SMTPException, OSError."""
    context = ssl.create_default_context(cafile=to.ca_file)  # read each time: CAs are renewed too
    if to.tls == "Implicit":
        smtp: _Timed = _TimedTls(local_hostname=_HELLO, timeout=TIMEOUT_SECONDS, context=context)
    else:
        smtp = _Timed(local_hostname=_HELLO, timeout=TIMEOUT_SECONDS)
    smtp.begin(to.host, seconds_left)
    try:
        code, words = smtp.connect(to.host, to.server_port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, words)
        if to.tls == "StartTls":
            smtp.starttls(context=context)
        if to.user:
            smtp.login(to.user, password)
        refused: RefusedRecipients = smtp.send_message(mail, address_of(to.sender), left)
        with contextlib.suppress(smtplib.SMTPException, OSError):  # it is taken: how it says good-bye is no matter
            smtp.quit()
        return refused
    finally:
        smtp.close()


class _Timed(smtplib.SMTP):
    """Reads answers until the session's time is over. smtplib's own time-out begins again with each byte."""

    def begin(self, host: str, seconds_left: Callable[[], float]) -> None:
        """`host`: the name that the server's certificate has to be for."""
        self._host = host
        self._seconds_left = seconds_left

    def getreply(self) -> tuple[int, bytes]:
        """Read an answer. Raises SMTPServerDisconnected, also where the time is over."""
        if self.file is None and self.sock is not None:
            self.file = io.BufferedReader(_Until(self.sock, self._seconds_left))
        return super().getreply()


class _TimedTls(smtplib.SMTP_SSL, _Timed):
    """The same with TLS from the first byte."""


class _Until(io.RawIOBase):
    """Raw reader of a socket with a deadline."""

    def __init__(self, sock: socket.socket, seconds_left: Callable[[], float]) -> None:
        self._sock = sock
        self._seconds_left = seconds_left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises TimeoutError."""
        if (left := self._seconds_left()) <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)


def _error(name: str, error: smtplib.SMTPException | OSError) -> Declined | NotifierUnavailable:
    where = f"notifiers.{name}"
    if isinstance(error, smtplib.SMTPResponseException):
        words = f"{where}: answered {_words(error.smtp_code, error.smtp_error)}"
        return Declined("NotifierRefused", words) if 500 <= error.smtp_code < 600 else NotifierUnavailable(words)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return Declined("NotifierRefused", f"{where}: {visible(str(error))[:WORDS_MAX]}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return Declined("NotifierRefused", f"{where}: its certificate is not trusted: {error.verify_message}")
    if isinstance(error, FileNotFoundError | PermissionError):
        return Declined("UrlUnreadable", f"{where}.email.caFile: {error.strerror}")
    return NotifierUnavailable(f"{where}: no answer ({type(error).__name__})")


def _of_recipients(name: str, refused: RefusedRecipients) -> Declined | NotifierUnavailable:
    words = f"notifiers.{name}: " + ", ".join(f"{one}: {_words(*answer)}" for one, answer in refused.items())
    if any(not 500 <= code < 600 for code, _ in refused.values()):
        return NotifierUnavailable(words)
    return Declined("NotifierRefused", words)


def _words(code: int, words: bytes | str) -> str:
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    return f"{code} {visible(text)[:WORDS_MAX]}"
