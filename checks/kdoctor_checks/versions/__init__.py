"""Checks of the versions that are installed, and of how they fit together."""
