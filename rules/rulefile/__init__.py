"""Parts of rule files: YAML, fields, sources, guards, matchers and targets. It names no kind of rules."""
