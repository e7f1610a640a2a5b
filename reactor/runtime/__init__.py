"""What every part of a process uses: clock, threads, logs, metrics. Imports none of the other packages."""
