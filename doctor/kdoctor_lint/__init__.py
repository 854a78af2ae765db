"""Reads training scripts without running them, and finds the pitfalls of multi-replica Keras."""
