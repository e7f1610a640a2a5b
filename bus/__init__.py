"""What is said and how it travels: messages, subjects, streams, and the bus that carries them."""
