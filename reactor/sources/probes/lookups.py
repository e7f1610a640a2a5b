"""Looking up names: in threads of their own, and not so many for one name that others find none.

A name server that is down blocks a thread for 5 s and more, and each try of a probe looks up again: one datagram that
got lost must not cost the next try too. So a name has a few lookups under way, and who comes then waits for the last.
"""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from reactor.runtime.threads import Threads

AddrInfo = tuple[Any, Any, int, str, tuple[Any, ...]]
LOOKUPS_MAX = 256
"""Most lookups at the same time: a thread takes some 50 kB."""
OF_A_NAME_MAX = 4
"""Most lookups of one name. The 256 are taken only where 64 names are dead."""
_Lookup = asyncio.Future[list[AddrInfo]]
_THREADS = Threads("lookups", LOOKUPS_MAX)
_UNDER_WAY: WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[tuple[str, int, int], list[_Lookup]]]
_UNDER_WAY = WeakKeyDictionary()


async def look_up(host: str, port: int, family: int) -> list[AddrInfo]:
    """Give the addresses of a host. Raises OSError, UnicodeError."""
    all_names = _UNDER_WAY.setdefault(asyncio.get_running_loop(), defaultdict(list))
    key = (host, port, family)
    under_way = all_names[key]
    if len(under_way) < OF_A_NAME_MAX:
        call = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        looking: _Lookup = asyncio.ensure_future(_THREADS.run(call))

        def looked(done: _Lookup) -> None:
            under_way.remove(done)
            if not under_way:
                all_names.pop(key, None)
            if not done.cancelled():
                done.exception()  # perhaps no caller waits for it any more

        looking.add_done_callback(looked)
        under_way.append(looking)
    return await asyncio.shield(under_way[-1])  # who gives up leaves the thread to its end
