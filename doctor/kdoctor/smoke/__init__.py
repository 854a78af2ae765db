"""Smoke scenarios: trainings that are run for real."""
