"""Bus between processes: messages, subjects, streams, and the ports and adapters that carry them."""
