"""Checks of the user's model and data, one per file: ``<family>/<slug>.py``."""
