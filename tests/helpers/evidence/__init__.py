"""Takes facts away from machines, and compares what the checks say."""
