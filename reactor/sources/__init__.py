"""Where health comes from: one file per kind of source, each with one function `run(source, world)`.

A source observes and speaks, through its `HealthPublisher`; it decides nothing. To add one: its model in
`rules/rulefile/sources.py`, its file here, one line in `catalog.py`, one test.
"""
