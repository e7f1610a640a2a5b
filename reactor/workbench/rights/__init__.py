"""Which permissions in which cluster the rules in use need, for each role of the reactor.

`reactor check --against` asks clusters whether they are granted, `reactor rbac` prints them.
"""
