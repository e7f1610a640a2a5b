"""What rules say and mean: pure, synchronous, deterministic. No IO, no clock, no randomness; time is an argument."""
