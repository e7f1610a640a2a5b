"""The carriers of a zone's isolation: each step probes the current state, does what is missing, verifies, and says so.

The originals of whatever is changed are saved next to it, before or with the change, and every write has a
precondition: so each step can be taken up by any process at any point, and a crash loses nothing.
"""
