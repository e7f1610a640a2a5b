"""Chooses if many messages of a stream are published as one batch, by what both ways took lately.

A server that syncs each message (`sync_interval: always`) writes a batch to its disk once: 64 messages take a tenth of
the time. One that syncs every two minutes takes four times as long for a batch, as it is put together on the disk. No
client can see how a server is set, so both ways are tried.
"""

from __future__ import annotations

BATCH_MIN = 16
"""Fewer messages cost as much as a batch as they do by themselves, also where each is synced."""
AGAIN = 128
"""Rounds after which the way that took longer is tried again: the server may be another one."""
SHARE = 0.25
"""Weight of the newest round in the average time of a way."""


class BatchChoice:
    """Choice for the next round of one stream."""

    def __init__(self) -> None:
        self._seconds: dict[bool, float] = {}
        """Seconds per message, as part of a batch (True) and by itself (False)."""
        self._rounds = 0

    def next(self) -> bool:
        """True if the next round is to be a batch."""
        self._rounds += 1
        if len(self._seconds) < 2:
            return True not in self._seconds
        better = self._seconds[True] <= self._seconds[False]
        return better if self._rounds % AGAIN else not better

    def took(self, seconds: float, *, batch: bool) -> None:
        """Note what each message of a round took."""
        before = self._seconds.get(batch, seconds)
        self._seconds[batch] = before + SHARE * (seconds - before)
