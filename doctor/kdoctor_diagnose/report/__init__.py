"""The formats of a diagnosis."""
