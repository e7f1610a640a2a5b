"""A real garden to test against: gardener-apiserver with its admission plugins, and the CRDs of a seed.

GARDENER_ASSETS=<folder that scripts/gardener has filled>   what `make gardener` builds and starts
"""
