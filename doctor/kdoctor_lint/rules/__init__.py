"""The lint rules, one per file."""
