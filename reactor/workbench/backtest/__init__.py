"""Backtest: what rules would have done with the past that a Prometheus remembers.

Ranges are fetched in chunks onto the disk, turned into observations as the live sources would have made them, and
played by `rules.rehearsal.backtest.backtester`. Nothing here decides anything.
"""
