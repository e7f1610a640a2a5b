"""TrafficFailover: moves weights between the backends of routes."""
