"""What we rely on a Karmada control plane for: on the emulated one, and on a real one where a checkout is given."""
