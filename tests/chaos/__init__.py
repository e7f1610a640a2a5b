"""Real reactors under real faults, watched from outside.

    .venv/bin/python -m tests.chaos --list
    .venv/bin/python -m tests.chaos --fault all --seeds 5
    .venv/bin/python -m tests.chaos --fault outage: --seeds 5 --keep
    CHAOS_CODE=../old .venv/bin/python -m tests.chaos --fault outage:bus-killed    the reactors of another worktree

One run: some dozens of routes whose primaries fail and recover by a seeded script, two reactor processes or more, a
real nats-server, and one kind of fault; in outages, eight workloads and a zone beside them, in some a real Prometheus
and Alertmanagers. The truth is the script and the log of writes of the Kubernetes API emulator; what the reactors say
of themselves is not asked. `tests.judge` judges by models of a perfect reactor.

| module | holds |
| --- | --- |
| script, patterns, workload_patterns, zone_patterns | what happens to targets: anywhere in a script; about an outage |
| scene, workloads, kubelets, zone, zone_record, alerting | what is on the Kubernetes side, on disk, and in Prometheus |
| truth, stranger | tells each target's health to what the reactors look at |
| world, run, pool, table | one world, its seeds, many worlds, the result |
| faults, faults_…, outages | what goes wrong |
| member, nursery, fleet, nodes, namespaces, proxy | the processes, and the ways between them |
"""
