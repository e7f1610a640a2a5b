"""Checkers of each story of an invented world, one promise or rule kind a file."""
