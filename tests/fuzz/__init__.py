"""Coverage-guided fuzzing of all that reads what others wrote: `make fuzz SECONDS=60`, `python -m tests.fuzz --help`.

`targets.py` says what may never happen, `seeds/<target>/` is where each begins: examples of all forms, and every input
that was once a finding. `test_fuzz.py` replays the seeds and fuzzes for a minute; a longer run keeps what it has learnt
in `.fuzz/`, which belongs to this machine alone.
"""
