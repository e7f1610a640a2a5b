"""Contract with a Karmada control plane: the emulated one, and a real one where a checkout is given."""
