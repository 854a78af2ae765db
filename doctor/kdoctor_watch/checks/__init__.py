"""Checks of a running job, one per file: ``<family>/<slug>.py``."""
