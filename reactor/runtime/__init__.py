"""Parts that every other package of a process uses: clock, threads, logs, metrics. Imports none of these packages."""
