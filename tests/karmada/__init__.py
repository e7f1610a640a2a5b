"""A Karmada control plane to test against: the emulator always, a real one from a checkout where one is given.

KARMADA_SOURCE=<checkout of karmada-io/karmada>   what `make karmada` builds and starts
KARMADA_BINARIES=<folder>                         what scripts/karmada has built from it
KUBEBUILDER_ASSETS=<folder>                       what scripts/api-server has built
"""
