"""Writes weights: routes in clusters, and load balancers outside of them."""
