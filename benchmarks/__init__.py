"""Benchmarks of `make bench`: figures as JSON, each beside the bare library or server in the same run."""
