"""The settings file, one module per part."""
