"""Quorum: one health of a target from what several sources say."""
