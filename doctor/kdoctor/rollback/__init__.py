"""Rollback plans: the commands that restore what changed since a lock was recorded. Nothing is run."""
