"""The shipped version matrix. Separate from the checklists, whose folder may contain no other YAML files."""
