"""The smoke trainings."""
