"""Check from outside whether the promises were kept: from what happened and what was written, never from memory.

`decisions` judges what a production audit can tell; `tests/judge` judges runs whose truth is known. Neither imports the
engine: a checker that shares the code it checks agrees with its mistakes.
"""
