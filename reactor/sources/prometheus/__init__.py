"""Sources that query Prometheus."""
