"""Views of the state on the bus, as plain values, for commands and the page. Each reader prints them in its own way."""
