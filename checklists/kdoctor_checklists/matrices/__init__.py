"""The shipped version matrix. It stands apart from the checklists, whose folder may hold nothing else in YAML."""
