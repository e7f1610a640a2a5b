"""Carries workloads and taints through a Karmada control plane: writes what Karmada reads, and lets it carry on."""
