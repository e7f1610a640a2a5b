"""The decision: observe, debounce, desire, guard, owe; and the book that keeps many groups."""
