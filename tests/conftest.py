"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing about what it shows: machines are busy. Benchmarks measure.
settings.register_profile("reactor", deadline=None)
settings.load_profile("reactor")
