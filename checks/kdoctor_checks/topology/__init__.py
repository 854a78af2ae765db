"""Checks of how the GPUs are connected."""
