"""`reactor check --against`: asks live API servers and Prometheus whether what rule files name is there.

Nothing is changed. Whether we may do something is asked with a SelfSubjectAccessReview, which stores nothing.
"""

SETTINGS = "settings"
"""The word for all servers of the settings file."""
