"""Checks of the machine or container around the GPUs."""
