"""What we rely on Gardener for, on a real gardener-apiserver and the real CRDs, where they are."""
