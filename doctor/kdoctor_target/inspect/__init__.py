"""Reads the examined environment: packages, libraries, the loader's search."""
