"""The decider role: owns partitions and decides for their groups."""
