"""Permissions that the rules in use need in each cluster, for each role of the reactor.

`reactor check --against` asks clusters whether they are granted, `reactor rbac` prints them.
"""
