"""The life of an alert: from Alertmanager's posts and lists to observations."""
