"""Load balancers outside of clusters: one module for each kind, all behind `port.LoadBalancer`."""
