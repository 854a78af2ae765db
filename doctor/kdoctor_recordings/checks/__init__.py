"""Checks of what other tools found, one per file: ``<family>/<slug>.py``."""
