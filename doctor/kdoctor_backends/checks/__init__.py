"""Checks of trainings on other backends, one per file: ``<family>/<slug>.py``."""
