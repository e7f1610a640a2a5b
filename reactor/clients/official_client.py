"""The two parts of the official Kubernetes client that are used: its configuration, and its ApiClient.

`import kubernetes` brings its synchronous twin, typed models, leader election and two more HTTP libraries along, which
cost 0.2 s and 12 MiB. So empty modules replace its packages while the two parts are imported. Afterwards they
are gone, and code that imports `kubernetes` gets all of it, with these same parts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec

_PACKAGES = ("kubernetes", "kubernetes.aio", "kubernetes.aio.utils")


@contextmanager
def _empty(names: tuple[str, ...]) -> Iterator[None]:
    """Let these packages be found without running what they import; those that are there already stay."""
    put = [name for name in names if name not in sys.modules]
    path = None
    for name in names:
        found = PathFinder.find_spec(name, path)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        path = found.submodule_search_locations
        if name in put:
            bare = ModuleSpec(name, None, is_package=True)
            bare.submodule_search_locations = path
            sys.modules[name] = module_from_spec(bare)
    try:
        yield
    finally:
        for name in put:
            del sys.modules[name]


with _empty(_PACKAGES):
    from kubernetes.aio import config as kube_config
    from kubernetes.aio.client import ApiClient, ApiException, Configuration
    from kubernetes.aio.config import ConfigException

__all__ = ["ApiClient", "ApiException", "ConfigException", "Configuration", "kube_config"]
