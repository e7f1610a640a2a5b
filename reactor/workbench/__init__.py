"""Tools for people who write rules: `backtest`, `check --against`, `init`."""
