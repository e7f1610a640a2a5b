"""`reactor doctor`: what keeps a reactor from working, in groups, each with what mends it.

Each group is a file with a function that gives findings. Groups are asked side by side, and each question has a time
limit: one server that hangs holds up no other. Nothing is changed.
"""
