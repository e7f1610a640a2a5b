"""Alertmanager's webhook: what comes in is journaled, answered, and only then turned into observations."""
