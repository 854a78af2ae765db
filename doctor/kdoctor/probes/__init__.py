"""Probes: they read the machine into facts."""
