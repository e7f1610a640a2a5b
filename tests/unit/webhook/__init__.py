"""The webhook without HTTP: alerts, states, bodies, and the keeper on a bus in memory."""
