"""Rules on the past: `reactor backtest`."""
