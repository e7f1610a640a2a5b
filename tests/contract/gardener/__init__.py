"""Contract with Gardener, on a real gardener-apiserver and the real CRDs, where they are available."""
