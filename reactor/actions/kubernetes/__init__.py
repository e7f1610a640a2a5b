"""The carrier Kubernetes: actions on workloads and taints, on the API of each cluster."""
