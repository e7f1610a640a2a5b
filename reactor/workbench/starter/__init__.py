"""`reactor init`: look at clusters, and write the rules that one could begin with.

`look` reads and writes nothing, `making` decides what rules there could be, `text` and `proof` make files of them.
"""
