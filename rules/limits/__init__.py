"""Limits on what rules may do: rates, windows, concurrency, approvals."""
