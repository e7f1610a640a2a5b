"""The page and its API: what the bus keeps, as JSON and in a browser. Reads the bus, so any number may run."""
