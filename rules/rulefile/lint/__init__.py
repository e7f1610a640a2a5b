"""Checks of rule files that find warnings: a file with one is used."""
