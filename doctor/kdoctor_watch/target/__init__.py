"""Reads a training of the user's while it runs, for ``kdoctor.Watch``."""
