"""A bus in memory, for tests and benchmarks: the same contract tests as for NATS."""
