"""Checks over all nodes of a fleet."""
