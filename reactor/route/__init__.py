"""Finds the partitions that a fact concerns, and publishes it to them."""
