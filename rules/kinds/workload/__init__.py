"""WorkloadFailover: takes workloads off failed clusters and places them on others."""
