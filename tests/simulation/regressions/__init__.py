"""Scenarios that broke a promise once, as JSON. Each is played again, and must not break it any more."""
