"""The composition root: from settings to a running process, its reload, and its end."""
