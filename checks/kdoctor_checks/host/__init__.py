"""The machine or container around the GPUs."""
