"""Checks of the GPUs themselves."""
