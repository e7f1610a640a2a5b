"""The webhook over HTTP, and the whole way from a post to an observation."""
