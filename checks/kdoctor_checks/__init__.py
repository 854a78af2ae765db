"""The built-in checks, one a file: ``<family>/<slug>.py``."""
