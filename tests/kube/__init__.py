"""Kubernetes API servers for tests: the emulator always, real ones where there are any.

A test folder that wants them says in its `conftest.py`:

    from tests.kube.tiers import kube, real_servers
"""
