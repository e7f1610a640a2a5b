"""The executor role: carries actions out."""
