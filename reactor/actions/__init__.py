"""The carriers: each reads the world, compares, writes once under a precondition, verifies, and reports an outcome."""
