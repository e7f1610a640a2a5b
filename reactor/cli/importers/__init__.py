"""Other tools' configuration, converted to rule files: `reactor import`."""
