"""Carries workloads from cluster to cluster through plain Kubernetes APIs: place, evict, purge, and the way back.

Nothing is done twice: every write is server-side apply of what is not yet so, or conditional on the version that was
read just before. Nothing half-moved is left unreported: an outcome names what was written before it failed.

An old cluster that comes back must not serve twice. Its purge fails with ClusterUnreachable while it is away, so the
core goes on owing it and tries again, at most RETRY_MAX after it has come back. Until then the copy there runs: a
cluster that is cut off cannot be reached. What keeps it from being served meanwhile is the route's business
(TrafficFailover on the same target), and what shortens it is a WorkloadWatch or ClusterProbe on that cluster: its first
fact makes the core look again at once.
"""
