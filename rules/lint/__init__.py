"""Hints about rule files: what is allowed and seldom meant. Above the catalog, as they ask each kind."""
