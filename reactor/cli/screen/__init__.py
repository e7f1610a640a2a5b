"""The screen of `reactor watch`: what is read from the bus, what is drawn of it, and what keys do."""
