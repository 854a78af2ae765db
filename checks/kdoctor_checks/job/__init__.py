"""Checks of the user's own model and data."""
