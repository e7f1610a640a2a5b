"""Real reactors under real faults, watched from outside.

    .venv/bin/python -m tests.chaos --list
    .venv/bin/python -m tests.chaos --fault all --seeds 5

One run: some dozens of routes whose primaries fail and recover by a seeded script, two reactor processes or more, a
real nats-server, and one kind of fault. The truth is the script and the log of writes of the Kubernetes API emulator;
what the reactors say of themselves is not asked. `reactor.audit.checker` judges.
"""
