"""A whole fleet in one process on virtual time: real deciders and executors, a bus and an API server that misbehave.

`draw` gives what shall happen, a function of a seed; `world` lets it happen; `judge` says from outside which promise
was broken; `shrink` looks for the shortest scenario that still breaks it. Nothing here waits, and nothing is random
that the seed does not decide: the same scenario always has the same history, to the last call.
"""
