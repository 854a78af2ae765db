"""Shell commands that remedies and rollbacks print."""
