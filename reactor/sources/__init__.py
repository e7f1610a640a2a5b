"""Sources of health: one file per kind of source, each with one function `run(source, world)`.

A source observes and speaks, through its `HealthPublisher`; it decides nothing. To add one: its file here, whose name
the catalog finds, and its model in `rules/rulefile/sources.py` (CONTRIBUTING.md).
"""
