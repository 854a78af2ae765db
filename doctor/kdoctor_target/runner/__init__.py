"""Runs smoke scenarios, each case in a separate process with a deadline."""
