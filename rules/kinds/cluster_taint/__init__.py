"""ClusterTaint: taints Karmada clusters by their conditions."""
