"""ZoneIsolation: takes a zone out of service, and back."""
