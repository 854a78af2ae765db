"""Checks of nodes, and of the network between them, one per file: ``<family>/<slug>.py``."""
