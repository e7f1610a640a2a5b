"""The demo: a small world on this machine that breaks and heals, and the real reactor at work in it."""
