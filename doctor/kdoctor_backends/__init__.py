"""Keras on JAX and on torch."""
