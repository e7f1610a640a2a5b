"""The long-running loops. One process may run all of them, or any."""
