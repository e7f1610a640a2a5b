"""Errors of the bus.

BusError
├── Unavailable      the server does not answer, or cannot store: try again with the same id
│   └── NotPermitted it does not let this user publish there: the operator's turn
├── Refused          a precondition did not hold: another process owns this now, trying again is no use
├── NotFound         no such key
├── StreamRecreated  the stream is not the one that was read: positions in it mean nothing any more
├── Malformed        a message that cannot be read: the sender's mistake
├── WrongServer      the server is too old, lacks JetStream, or holds other streams: the operator's mistake
│   └── NotReady     it lacks servers for as many copies as are wanted: they may come
└── EmbeddedError    the embedded nats-server
    ├── NoBinary     is not installed
    ├── StoreUnusable  cannot write to its folder: a full disk, missing rights
    ├── FolderInUse  would share its store with another that still runs
    └── ServerExited did not start, or ended by itself
"""


class BusError(Exception):
    """Something went wrong on the bus."""


class Unavailable(BusError):
    """The bus did not confirm in time. What was published may have been stored: publish again with the same id."""


class NotPermitted(Unavailable):
    """The server does not let this user publish on the subject. Trying again helps once its operator has allowed it."""


class Refused(BusError):
    """A revision or an epoch was not the one expected: a newer owner has written."""


class KeyNotFound(BusError):
    """The key holds nothing."""


class StreamRecreated(BusError):
    """The stream was deleted and created again, or lost what we had read: our position in it means nothing any more.

    The reader itself says where it reads on, and drops what it concluded from positions.
    """


class Malformed(BusError):
    """The message is not what its type says."""


class WrongServer(BusError):
    """The server cannot carry this product: too old, without JetStream, or holding streams we cannot use."""


class NotReady(WrongServer):
    """A cluster has too few servers for the copies that are wanted. Those that start may still join."""


class EmbeddedError(BusError):
    """The embedded nats-server does not run."""


class NoBinary(EmbeddedError):
    """No nats-server binary was found."""


class FolderInUse(EmbeddedError):
    """Another live process keeps its store in this folder: two would destroy it."""


class ServerExited(EmbeddedError):
    """The server did not come up in time, or ended by itself; its last words are in the message."""


class StoreUnusable(EmbeddedError):
    """Its folder cannot be written to: the operating system's reason is in the message."""
