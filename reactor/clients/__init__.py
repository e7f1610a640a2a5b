"""The only importers of the libraries that talk to Kubernetes and Prometheus."""
