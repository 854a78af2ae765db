"""Helpers for text: lists, wrapping, escaping, secrets."""
