"""Running parts of the product: sources, roles, actions, the command line, and the demo's world."""
