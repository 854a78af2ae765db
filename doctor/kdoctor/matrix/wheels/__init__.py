"""Reads a wheel: its metadata, what it was built with, where it looks for libraries, and its GPU code."""
