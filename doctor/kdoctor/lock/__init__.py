"""Locks: what a passing run recorded, one fact a line, next to the checklist."""
