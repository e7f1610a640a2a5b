"""The bus on NATS JetStream: `JetStreamBus`, and `provision`, which makes what it needs on the server."""

from bus.jetstream.connection import Credentials
from bus.jetstream.jetstream_bus import JetStreamBus
from bus.jetstream.provisioning import provision

__all__ = ["Credentials", "JetStreamBus", "provision"]
