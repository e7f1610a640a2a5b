"""What `make bench` measures: figures as JSON, each beside the bare library or server in the same run."""
