"""Counts tries in a row until the verdict changes: the kubelet's failureThreshold and successThreshold."""

from __future__ import annotations

from bus.messages import Health


class ThresholdCounter:
    """The verdict over a series of tries. None until the first threshold is met: until then it is not known."""

    def __init__(self, *, failures: int, successes: int) -> None:
        self._needed = {False: failures, True: successes}
        self._last: bool | None = None
        self._length = 0
        self.verdict: Health | None = None

    def add(self, *, succeeded: bool) -> Health | None:
        """Count a try and give the verdict after it."""
        self._length = self._length + 1 if succeeded is self._last else 1
        self._last = succeeded
        if self._length >= self._needed[succeeded]:
            self.verdict = Health.HEALTHY if succeeded else Health.UNHEALTHY
        return self.verdict

    def lose(self) -> None:
        """Forget everything: a try that we failed to make says nothing about the target, nor do those before it."""
        self._last, self._length, self.verdict = None, 0, None

    def agrees(self, *, succeeded: bool) -> bool:
        """True if a try that does not count confirms the current verdict."""
        return self.verdict is (Health.HEALTHY if succeeded else Health.UNHEALTHY)
