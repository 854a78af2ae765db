"""Checks of environment variables."""
