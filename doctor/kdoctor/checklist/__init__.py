"""Checklists: load, validate, extend and select; turn a checklist into a plan of checks."""
