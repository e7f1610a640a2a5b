"""What can go wrong on the bus.

    BusError
    ├── Unavailable      the server does not answer, or cannot store: try again with the same id
    ├── Refused          a precondition did not hold: somebody else owns this now, trying again is no use
    ├── NotFound         no such key
    ├── Malformed        a message that cannot be read: the sender's mistake
    └── WrongServer      the server is too old or lacks JetStream: the operator's mistake
"""


class BusError(Exception):
    """Something went wrong on the bus."""


class Unavailable(BusError):
    """The bus did not confirm in time. What was published may have been stored: publish again with the same id."""


class Refused(BusError):
    """A revision or an epoch was not the one expected: a newer owner has written."""


class NotFound(BusError):
    """The key holds nothing."""


class Malformed(BusError):
    """The message is not what its type says."""


class WrongServer(BusError):
    """The server cannot carry this product: too old, or without JetStream."""
