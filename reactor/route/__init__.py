"""From a fact to the partitions that it concerns."""
