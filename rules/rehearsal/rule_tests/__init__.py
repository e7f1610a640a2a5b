"""Rule tests: `reactor test`."""
