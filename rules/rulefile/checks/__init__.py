"""Checks of rule files that find errors: a file with one is refused."""
