"""What runs: sources, roles, actions, the command line, and the demo's world."""
