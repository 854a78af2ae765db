"""YAML documents written by people: read safely, every error reported with file, line and column."""
