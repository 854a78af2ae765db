"""Renderers: one output format a file."""
