"""Runs smoke scenarios, each case in a process of its own with a deadline."""
