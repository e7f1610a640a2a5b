"""Sources that watch a Kubernetes API."""
