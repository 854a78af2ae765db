"""Checks of the smoke trainings."""
