"""The words of the rule file: its models, matchers and target patterns, and the loader that finds every mistake."""
