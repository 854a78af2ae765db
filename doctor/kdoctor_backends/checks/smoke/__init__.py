"""Trainings on JAX and on torch."""
