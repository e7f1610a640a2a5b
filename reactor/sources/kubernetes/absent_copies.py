"""Copies that a WorkloadWatch is asked for and does not know: the server is asked whether they are there.

One that was removed while no process watched was said to be gone by none: the LIST of a watch that begins lacks it, and
shows nothing of what it lacks. Rules would count with it until an action on it finds none.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping

from reactor.clients.changes import ObjectKey
from reactor.clients.hanging import ANSWER_SECONDS
from reactor.clients.kubernetes_port import KubeApi, ObjectNotFound
from reactor.clients.read_alone import object_path
from reactor.clients.reflector import Reflector
from reactor.runtime.errors import Retryable, Terminal
from reactor.sources.kubernetes.workload_kinds import ServedKind
from rules.core.segments import encode_segment
from rules.rulefile.sources import WorkloadWatch

TARGET = "workload/{cluster}/{namespace}/{kind}/{name}"
"""Template by which a target names its object: that of sources that say none of their own."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""Form of a name in Kubernetes: no more of a path than that."""
SayGone = Callable[[ServedKind, ObjectKey, str], Awaitable[None]]
"""Tells that there is no object of this kind and key, and that the target is Unknown for good."""

log = logging.getLogger(__name__)


class AbsentCopies:
    """The copies that one source does not know."""

    def __init__(
        self, source: WorkloadWatch, api: KubeApi, watches: Mapping[ServedKind, Reflector], say_gone: SayGone
    ) -> None:
        self._source = source
        self._api = api
        self._watches = watches
        self._say_gone = say_gone
        self._asked: dict[str, tuple[ServedKind, ObjectKey]] = {}
        self._wanted = asyncio.Event()

    def ask(self, targets: Collection[str]) -> None:
        """Have the server asked for those of them that could be of this source."""
        for target in targets:
            if (found := self._meant(target)) is not None:
                self._asked[target] = found
                self._wanted.set()

    async def run(self) -> None:
        """Look when it is asked for, one after the other, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            asked, self._asked = self._asked, {}
            for target, (kind, key) in asked.items():
                gone = await self._is_gone(self._watches[kind], key)
                if gone is None:
                    break  # it does not answer: deciders that have to know ask again in a second
                if gone:
                    await self._say_gone(kind, key, target)

    def _meant(self, target: str) -> tuple[ServedKind, ObjectKey] | None:
        """The object that a target names; None: it is none of this source."""
        kind_, *path = target.split("/")
        if self._source.target != TARGET or kind_ != "workload" or len(path) != 4:
            return None
        cluster, namespace, kind, name = path
        if cluster != encode_segment(self._source.cluster) or self._source.namespace not in (None, namespace):
            return None
        if not (_NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
            return None
        names = [one if isinstance(one, str) else one.kind for one in self._source.kinds]
        served = next((one for one in self._watches if one.kind == kind and one.namespaced), None)
        # Two kinds of one name, in two API groups, make the same target: the one that is not asked may have it.
        return None if served is None or names.count(kind) > 1 else (served, ObjectKey(namespace, name))

    async def _is_gone(self, watch: Reflector, key: ObjectKey) -> bool | None:
        """True if the server says that there is none, and its watch has not shown one meanwhile; None: no answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._api.get(object_path(watch.path, key))
        except ObjectNotFound:
            return key not in watch.objects
        except (Retryable, Terminal, TimeoutError) as error:
            log.debug("not known whether it is there", extra={"cluster": self._api.cluster, "reason": str(error)})
            return False if isinstance(error, Terminal) else None  # we may not read this kind, and may others
        return False
