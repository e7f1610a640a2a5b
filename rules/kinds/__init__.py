"""Rule kinds: what each wants, given its group. Absolute desired state, never a delta."""
