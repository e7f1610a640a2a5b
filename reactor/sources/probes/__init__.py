"""Sources that connect to a target."""
