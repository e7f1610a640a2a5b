"""Rule files and their meaning: pure, synchronous, deterministic. No IO, no clock, no randomness; time is
an argument."""
