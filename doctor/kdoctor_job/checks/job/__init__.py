"""Checks of the user's model and data."""
