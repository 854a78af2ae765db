"""Trainings over several nodes."""
