"""Rehearsal: rule tests and simulation, on the same decision function as the live service."""
