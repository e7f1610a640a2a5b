"""Whether the promises were kept, judged from outside: from what happened and what was written, never from memory.

`checker` judges a run whose truth is known (a script of outages and the API server's own log of writes). `decisions`
judges what a production audit can tell. Neither imports the engine: a checker that shares the code it checks agrees
with its mistakes.
"""
